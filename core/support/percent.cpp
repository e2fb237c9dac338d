// Reads percentages.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/percent.h"

#include <charconv>
#include <cmath>

namespace fuseline {

std::optional<double> parsePercent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double percent = 0.0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool isWhole = problem == std::errc() && end == text.data() + text.size() && std::isfinite(percent);
  return isWhole ? std::optional(percent) : std::nullopt;
}

}  // namespace fuseline
