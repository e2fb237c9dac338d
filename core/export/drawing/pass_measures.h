// Sizes of the parts of a pass, and their texts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/drawn_pass.h"
#include "core/export/drawing/graph_layout.h"

#include <string>
#include <vector>

namespace fuseline {

inline constexpr double kNameFontPx = 13.0;
inline constexpr double kTypeFontPx = 11.5;
inline constexpr double kLabelFontPx = 10.5;
inline constexpr double kLinePx = 16.0;
inline constexpr double kLabelLinePx = 14.0;
inline constexpr double kTextInsetPx = 8.0;
inline constexpr double kStripePx = 5.0;

struct BoxLine {
  std::string text;  // shortened
  const char* look;  // a class: "title", "type" or "figure"
  double fontPx;
};
std::vector<BoxLine> linesOf(const DrawnBox& box);

bool isOp(const DrawnBox& box);
/// Sizes of the boxes; ops of a pass are equally wide.
std::vector<DrawnSize> sizesOf(const DrawnPass& pass);

/// Shortened.
std::string titleOf(const DrawnFrame& frame);
/// Size of the title, and of the time below it.
DrawnSize titleSize(const DrawnFrame& frame);

LayoutProblem layoutProblem(const DrawnPass& pass);

}  // namespace fuseline
