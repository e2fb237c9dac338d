// Joins names.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/name_list.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

std::string nameList(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  const std::span first = std::span(names).first(std::min(names.size(), kMost));
  const std::size_t numOthers = names.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "), numOthers == 0 ? "" : fmt::format(" and {} more", numOthers));
}

}  // namespace fuseline
