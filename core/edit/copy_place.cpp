// Goes down row by row until nothing is covered.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/copy_place.h"

#include "core/document/file_format.h"
#include "core/edit/view_grid.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace fuseline {

namespace {

using RowsByColumn = std::multimap<int, int>;

bool covers(const RowsByColumn& nodes, Position place) {
  const auto first = nodes.upper_bound(place.x - kNodeWidthPx);
  const auto last = nodes.lower_bound(place.x + kNodeWidthPx);
  return std::any_of(first, last, [&](const auto& node) { return std::abs(node.second - place.y) < kRowPitchPx; });
}

bool overlap(const FrameArea& a, const FrameArea& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool coversFrame(const PipelineDocument& document, FrameArea area, int offset) {
  area.y += offset;
  return std::ranges::any_of(document.frames(),
                             [&](const DocumentFrame& frame) { return frame.area && overlap(*frame.area, area); });
}

}  // namespace

Position offsetOfCopy(const PipelineDocument& document, std::string_view text) {
  const PipelineDocument copy = parseDocument(text).document;
  RowsByColumn nodes;
  for (const auto& [id, place] : document.positions()) nodes.emplace(place.x, place.y);
  Position offset{0, 0};
  const auto coversNode = [&](const auto& node) { return covers(nodes, {node.second.x, node.second.y + offset.y}); };
  const auto coversAFrame = [&](const DocumentFrame& frame) {
    return frame.area && coversFrame(document, *frame.area, offset.y);
  };
  while (std::ranges::any_of(copy.positions(), coversNode) || std::ranges::any_of(copy.frames(), coversAFrame))
    offset.y += kRowPitchPx;
  return offset;
}

}  // namespace fuseline
