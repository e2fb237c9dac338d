// The colors of drawings, light and dark: of SVG and reports, and of the designer's canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuseline {

/// As "#rrggbb". Texts reach a contrast of 4.5:1 on paper and in boxes.
struct DrawingPalette {
  const char* paper;
  const char* text;
  const char* dimText;
  const char* node;
  const char* nodeBorder;
  const char* forward;
  const char* backward;
  const char* joint;
  const char* gemm;
  const char* norm;
  const char* activation;
  const char* elementwise;
  const char* branch;
  const char* communication;
  const char* neutral;
};

inline constexpr DrawingPalette kLightPalette = {
    .paper = "#ffffff",
    .text = "#1b1f26",
    .dimText = "#586170",
    .node = "#ffffff",
    .nodeBorder = "#aab1bd",
    .forward = "#0f6ab4",
    .backward = "#a2480c",
    .joint = "#7a3ea8",
    .gemm = "#2f6fd0",
    .norm = "#8250c4",
    .activation = "#2a9156",
    .elementwise = "#b98a00",
    .branch = "#7d6046",
    .communication = "#0b7f86",
    .neutral = "#78818f",
};

inline constexpr DrawingPalette kDarkPalette = {
    .paper = "#191b21",
    .text = "#e4e7ec",
    .dimText = "#a3abb8",
    .node = "#2a2e37",
    .nodeBorder = "#4d5563",
    .forward = "#62b3f5",
    .backward = "#f39a57",
    .joint = "#c79bf2",
    .gemm = "#5b93ec",
    .norm = "#a97de6",
    .activation = "#4bbd7d",
    .elementwise = "#dcb33c",
    .branch = "#b8957a",
    .communication = "#3fc1c9",
    .neutral = "#8d96a5",
};

/// The color of an op category, and its name in style sheets: "gemm".
struct CategoryTone {
  std::string_view name;
  const char* DrawingPalette::*color;
};

/// The last one, "neutral", is that of all others.
inline constexpr std::array<CategoryTone, 7> kCategoryTones = {{
    {"gemm", &DrawingPalette::gemm},
    {"norm", &DrawingPalette::norm},
    {"activation", &DrawingPalette::activation},
    {"elementwise", &DrawingPalette::elementwise},
    {"branch", &DrawingPalette::branch},
    {"communication", &DrawingPalette::communication},
    {"neutral", &DrawingPalette::neutral},
}};

/// category: that of an op, "Normalization".
const CategoryTone& toneOf(std::string_view category);

struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// Even steps to the eye, and in grey, too. Source: six colors of matplotlib's viridis.
inline constexpr std::array<Rgb, 6> kHeatStops = {{{0x44, 0x01, 0x54},
                                                   {0x41, 0x44, 0x87},
                                                   {0x2a, 0x78, 0x8e},
                                                   {0x22, 0xa8, 0x84},
                                                   {0x7a, 0xd1, 0x51},
                                                   {0xfd, 0xe7, 0x25}}};

/// Source: five colors of ColorBrewer's PuOr, with blue for purple and grey in the middle.
inline constexpr std::array<Rgb, 5> kChangeStops = {
    {{0x1f, 0x5f, 0xa8}, {0x92, 0xb8, 0xdd}, {0xd9, 0xd9, 0xd9}, {0xf4, 0xb1, 0x6a}, {0xb3, 0x58, 0x06}}};

/// From dark blue, 0, through green to yellow, 1; values outside are clamped.
Rgb heatColor(double share);
/// From blue, -1, through grey to orange, 1; values outside are clamped. Colors that the color-blind tell apart.
Rgb divergingColor(double change);
/// "#440154".
std::string hexOf(const Rgb& color);
/// WCAG 2.1 relative luminance, 0 to 1.
double relativeLuminance(const Rgb& color);
/// Whether white is read better on this ground than black.
bool wantsWhiteText(const Rgb& ground);

}  // namespace fuseline
