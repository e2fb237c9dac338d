// Goes down row by row until nothing is covered.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/copy_place.h"

#include "core/document/file_format.h"
#include "core/edit/view_grid.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>

namespace fuseline {

namespace {

/// Files may have places anywhere in the range of int.
using RowsByColumn = std::multimap<std::int64_t, std::int64_t>;

bool covers(const RowsByColumn& nodes, std::int64_t x, std::int64_t y) {
  const auto first = nodes.upper_bound(x - kNodeWidthPx);
  const auto last = nodes.lower_bound(x + kNodeWidthPx);
  return std::any_of(first, last, [&](const auto& node) { return std::abs(node.second - y) < kRowPitchPx; });
}

/// Do two stretches that begin at a and b overlap?
bool overlap(std::int64_t a, std::int64_t lengthOfA, std::int64_t b, std::int64_t lengthOfB) {
  return a < b + lengthOfB && b < a + lengthOfA;
}

bool overlap(const FrameArea& a, const FrameArea& b, int offsetOfB) {
  return overlap(a.x, a.width, b.x, b.width) && overlap(a.y, a.height, std::int64_t{b.y} + offsetOfB, b.height);
}

bool coversFrame(const PipelineDocument& document, const FrameArea& area, int offset) {
  return std::ranges::any_of(
      document.frames(), [&](const DocumentFrame& frame) { return frame.area && overlap(*frame.area, area, offset); });
}

}  // namespace

Position offsetOfCopy(const PipelineDocument& document, std::string_view text) {
  const PipelineDocument copy = parseDocument(text).document;
  RowsByColumn nodes;
  for (const auto& [id, place] : document.positions()) nodes.emplace(place.x, place.y);
  Position offset{0, 0};
  const auto coversNode = [&](const auto& node) {
    return covers(nodes, node.second.x, std::int64_t{node.second.y} + offset.y);
  };
  const auto coversAFrame = [&](const DocumentFrame& frame) {
    return frame.area && coversFrame(document, *frame.area, offset.y);
  };
  while (std::ranges::any_of(copy.positions(), coversNode) || std::ranges::any_of(copy.frames(), coversAFrame))
    offset.y += kRowPitchPx;
  return offset;
}

}  // namespace fuseline
