// Colours of drawings: those of the catalog, readable, and of heat.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/palette.h"
#include "core/ops/catalog.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

double contrast(const char* a, const char* b) {
  const auto luminance = [](const char* hex) {
    const auto channel = [&](int at) {
      return static_cast<std::uint8_t>(std::stoi(std::string(hex + at, 2), nullptr, 16));
    };
    return relativeLuminance({channel(1), channel(3), channel(5)});
  };
  const auto [low, high] = std::minmax(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

TEST(DrawingPalette, TextsAreReadable) {
  for (const DrawingPalette& palette : {kLightPalette, kDarkPalette})
    for (const char* ground : {palette.paper, palette.node}) {
      EXPECT_GE(contrast(palette.text, ground), 4.5);
      EXPECT_GE(contrast(palette.dimText, ground), 4.5);
      for (const char* title : {palette.forward, palette.backward, palette.joint})
        EXPECT_GE(contrast(title, ground), 4.5);
    }
}

TEST(DrawingPalette, HasTheTonesOfTheCatalog) {
  const std::map<std::string, std::string_view> tones = {{"BasicLinear", "gemm"},     {"GroupedLinear", "gemm"},
                                                         {"RMSNorm", "norm"},         {"L2Normalization", "norm"},
                                                         {"GELU", "activation"},      {"SwiGLU", "activation"},
                                                         {"Formula", "elementwise"},  {"MakeExtraOutput", "branch"},
                                                         {"AddExtraInput", "branch"}, {"AllReduce", "communication"}};
  for (const auto& [name, tone] : tones) EXPECT_EQ(toneOf(builtinOperations().find(name)->category).name, tone) << name;
}

// Source: matplotlib's _cm_listed.py, viridis at 0, 1/2 and 1; between the stops the colors are interpolated.
TEST(DrawingPalette, HeatIsViridis) {
  EXPECT_EQ(hexOf(heatColor(-1.0)), "#440154");
  EXPECT_EQ(hexOf(heatColor(2.0)), "#fde725");
  const Rgb middle = heatColor(0.5);
  EXPECT_NEAR(middle.red, 33, 8);
  EXPECT_NEAR(middle.green, 145, 8);
  EXPECT_NEAR(middle.blue, 140, 8);
  EXPECT_TRUE(wantsWhiteText(heatColor(0.0)));
  EXPECT_FALSE(wantsWhiteText(heatColor(1.0)));
}

}  // namespace
}  // namespace fuseline
