// Measures boxes and labels by their texts.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/pass_measures.h"

#include "core/export/drawing/text_width.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fuseline {

namespace {

constexpr double kNarrowestBoxPx = 96.0;
constexpr std::size_t kMostNameCharacters = 28;
constexpr std::size_t kMostTitleCharacters = 48;

DrawnSize ownSize(const DrawnBox& box) {
  const std::vector<BoxLine> lines = linesOf(box);
  double width = isOp(box) ? kNarrowestBoxPx : 0.0;
  for (const BoxLine& line : lines)
    width = std::max(width, textWidthPx(line.text, line.fontPx) + 2 * kTextInsetPx + (isOp(box) ? kStripePx : 0.0));
  return {std::ceil(width), kLinePx * static_cast<double>(lines.size()) + (isOp(box) ? 10.0 : 6.0)};
}

DrawnSize labelSize(const std::string& text) {
  return text.empty() ? DrawnSize() : DrawnSize{std::ceil(textWidthPx(text, kLabelFontPx)) + 4.0, kLabelLinePx};
}

}  // namespace

std::vector<BoxLine> linesOf(const DrawnBox& box) {
  std::vector<BoxLine> lines = {{shortened(box.name, kMostNameCharacters), "title", kNameFontPx}};
  if (!box.type.empty()) lines.push_back({shortened(box.type, kMostNameCharacters), "type", kTypeFontPx});
  if (!box.figure.empty()) lines.push_back({box.figure, "figure", kTypeFontPx});
  return lines;
}

bool isOp(const DrawnBox& box) { return box.node >= 0; }

std::vector<DrawnSize> sizesOf(const DrawnPass& pass) {
  std::vector<DrawnSize> sizes;
  double widestOp = 0.0;
  for (const DrawnBox& box : pass.boxes) {
    sizes.push_back(ownSize(box));
    if (isOp(box)) widestOp = std::max(widestOp, sizes.back().width);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (isOp(pass.boxes[i])) sizes[i].width = widestOp;
  return sizes;
}

std::string titleOf(const DrawnFrame& frame) { return shortened(frame.title, kMostTitleCharacters); }

DrawnSize titleSize(const DrawnFrame& frame) {
  const DrawnSize title = labelSize(titleOf(frame));
  const DrawnSize figure = labelSize(frame.figure);
  return {std::max(title.width, figure.width), title.height + figure.height};
}

LayoutProblem layoutProblem(const DrawnPass& pass) {
  LayoutProblem problem{.flow = pass.phase == Phase::Forward ? Flow::Down : Flow::Up, .boxes = sizesOf(pass)};
  for (const DrawnWire& wire : pass.wires)
    problem.wires.push_back({.from = wire.from, .to = wire.to, .label = labelSize(wire.label), .isMain = wire.isMain});
  for (const DrawnFrame& frame : pass.frames)
    problem.frames.push_back({.boxes = frame.boxes, .outer = frame.outer, .title = titleSize(frame)});
  return problem;
}

}  // namespace fuseline
