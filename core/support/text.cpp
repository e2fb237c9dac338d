// Edit distance and value formatting.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool sameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// A value in the largest unit that it has one of.
struct Scaled {
  double value = 0.0;
  std::size_t unit = 0;

  /// Without decimals.
  bool isWhole() const { return (unit == 0 && value == std::floor(value)) || std::abs(value) >= 999.5; }
};

Scaled scaledBy(double step, double value, std::size_t numUnits) {
  Scaled scaled{.value = value};
  while (std::abs(scaled.value) >= step && scaled.unit + 1 < numUnits) {
    scaled.value /= step;
    ++scaled.unit;
  }
  return scaled;
}

std::string scaled(double value, double step, const char* const* units, std::size_t numUnits) {
  const Scaled found = scaledBy(step, value, numUnits);
  return found.isWhole() ? fmt::format("{:.0f} {}", found.value, units[found.unit])
                         : fmt::format("{:.3g} {}", found.value, units[found.unit]);
}

/// Decimals that give a number three digits.
int decimalsOf(double value) {
  const double size = std::abs(value);
  return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

}  // namespace

/// Two neighboring letters that are exchanged count once.
int editDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1), above, before;
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(above, row);
    ++row[0];
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (sameLetter(a[i], b[j]) ? 0 : 1), row[j] + 1, above[j + 1] + 1});
      const bool isExchanged = i > 0 && j > 0 && sameLetter(a[i], b[j - 1]) && sameLetter(a[i - 1], b[j]);
      if (isExchanged) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const auto length = static_cast<int>(name.size());
  int best = length;  // one letter at least is the same
  std::string found;
  for (const std::string& candidate : candidates) {
    const int distance = editDistance(name, candidate);
    const int most = std::max<int>(3, std::max(length, static_cast<int>(candidate.size()))) / 3;
    if (distance > most || distance >= best) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

std::string misspelt(std::string_view name, std::span<const std::string_view> candidates) {
  const int most = name.size() < 6 ? 1 : 2;
  const auto distanceOf = [&](std::string_view candidate) { return editDistance(name, candidate); };
  const auto found = std::ranges::min_element(candidates, {}, distanceOf);
  return found == candidates.end() || distanceOf(*found) > most ? std::string() : std::string(*found);
}

std::string didYouMean(std::string_view near) { return near.empty() ? "." : fmt::format("; did you mean {}?", near); }

std::string formatBytes(std::int64_t bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes), 1024.0, kUnits.data(), kUnits.size());
}

/// A measured value keeps its zeros: 1.00 s is known to three digits.
std::string formatDuration(double nanoseconds) {
  static constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  const Scaled time = scaledBy(1000.0, nanoseconds, kUnits.size());
  return fmt::format("{:.{}f} {}", time.value, time.isWhole() ? 0 : decimalsOf(time.value), kUnits[time.unit]);
}

std::string formatFlops(double flops) {
  static constexpr std::array kUnits = {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  return scaled(flops, 1000.0, kUnits.data(), kUnits.size());
}

double shortestReal(double value) {
  const auto single = static_cast<float>(value);
  if (!std::isfinite(single) || static_cast<double>(single) != value) return value;
  return std::stod(fmt::format("{}", single));
}

std::string cutText(std::string_view text, std::size_t mostBytes) {
  if (text.size() <= mostBytes) return std::string(text);
  std::size_t end = mostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string inParentheses(std::string_view note) { return note.empty() ? "" : fmt::format("  ({})", note); }

}  // namespace fuseline
