// Tones of categories, and colors of heat.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/palette.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Parts of categories' names, without their first letters, which are capitals in some.
struct ToneWord {
  std::string_view word;
  std::size_t tone;
};
constexpr std::array<ToneWord, 16> kToneWords = {{{"inear", 0},
                                                  {"GEMM", 0},
                                                  {"Matrix", 0},
                                                  {"orm", 1},
                                                  {"ctivation", 2},
                                                  {"lementwise", 3},
                                                  {"ias", 3},
                                                  {"cale", 3},
                                                  {"ranch", 4},
                                                  {"esidual", 4},
                                                  {"xtra", 4},
                                                  {"tructure", 4},
                                                  {"ommunication", 5},
                                                  {"all-gather", 5},
                                                  {"reduce-scatter", 5},
                                                  {"all-reduce", 5}}};

double linearised(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

std::uint8_t mixed(std::uint8_t from, std::uint8_t to, double share) {
  return static_cast<std::uint8_t>(std::lround(from + share * (to - from)));
}

/// share: 0 is the first stop, 1 the last one.
template <std::size_t kStops>
Rgb colorOf(const std::array<Rgb, kStops>& stops, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(kStops - 1);
  const auto first = std::min(static_cast<std::size_t>(place), kStops - 2);
  const double rest = place - static_cast<double>(first);
  const Rgb& a = stops[first];
  const Rgb& b = stops[first + 1];
  return {mixed(a.red, b.red, rest), mixed(a.green, b.green, rest), mixed(a.blue, b.blue, rest)};
}

}  // namespace

const CategoryTone& toneOf(std::string_view category) {
  const auto stands = [&](const ToneWord& each) { return category.find(each.word) != std::string_view::npos; };
  const auto found = std::ranges::find_if(kToneWords, stands);
  return found == kToneWords.end() ? kCategoryTones.back() : kCategoryTones[found->tone];
}

Rgb heatColor(double share) { return colorOf(kHeatStops, share); }

Rgb divergingColor(double change) { return colorOf(kChangeStops, (change + 1.0) / 2.0); }

std::string hexOf(const Rgb& color) { return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue); }

double relativeLuminance(const Rgb& color) {
  constexpr double kMost = 255.0;
  return 0.2126 * linearised(color.red / kMost) + 0.7152 * linearised(color.green / kMost) +
         0.0722 * linearised(color.blue / kMost);
}

bool wantsWhiteText(const Rgb& ground) {
  const double luminance = relativeLuminance(ground);
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05;
}

}  // namespace fuseline
