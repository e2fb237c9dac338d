// Boxes in boxes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_geometry.h"

#include "core/edit/apply_edit.h"
#include "ui/canvas/metrics.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

int gridBelow(int value) { return static_cast<int>(std::floor(static_cast<double>(value) / kGridPx)) * kGridPx; }
int gridAbove(int value) { return static_cast<int>(std::ceil(static_cast<double>(value) / kGridPx)) * kGridPx; }

double sizeOf(const FrameArea& area) { return static_cast<double>(area.width) * area.height; }

bool isInside(const DocumentFrame& outer, const DocumentFrame& inner) {
  return outer.area != inner.area && boxOf(*outer.area).contains(boxOf(*inner.area));
}

/// Inner frames are smaller than those around them.
std::vector<const DocumentFrame*> innermostFirst(const PipelineDocument& document) {
  std::vector<const DocumentFrame*> frames = drawnFrames(document);
  std::ranges::stable_sort(frames, {}, [](const DocumentFrame* frame) { return sizeOf(*frame->area); });
  return frames;
}

/// Area of a frame around the content, on the grid.
QRect withRoom(const QRect& content, int marginPx) {
  const int left = gridBelow(content.x() - marginPx);
  const int top = gridBelow(content.y() - marginPx - kFrameHeaderPx);
  const int right = gridAbove(content.x() + content.width() + marginPx);
  const int bottom = gridAbove(content.y() + content.height() + marginPx);
  return {left, top, right - left, bottom - top};
}

/// Both in the order of NodeBoxes.
bool hasAll(const std::vector<std::string>& nodes, const std::vector<std::string>& some) {
  return std::ranges::includes(nodes, some);
}

/// In it with all of its nodes, or with none.
bool isNestedIn(const NodeGroup& outer, const NodeGroup& inner) {
  const auto isInOuter = [&](const std::string& id) { return std::ranges::binary_search(outer, id); };
  return hasAll(outer, inner) || std::ranges::none_of(inner, isInOuter);
}

}  // namespace

QRect boxOf(const FrameArea& area) { return {area.x, area.y, area.width, area.height}; }

FrameArea areaOf(const QRect& box) { return {box.x(), box.y(), box.width(), box.height()}; }

FrameContent contentOf(const PipelineDocument& document, const DocumentFrame& frame, const NodeBoxes& nodes) {
  FrameContent content;
  if (frame.isNote()) return content;
  const QRect box = boxOf(*frame.area);
  for (const auto& [id, node] : nodes)
    if (box.contains(node)) content.nodes.push_back(id);
  for (const DocumentFrame* other : drawnFrames(document))
    if (other->id != frame.id && isInside(frame, *other)) content.frames.push_back(other->id);
  return content;
}

std::vector<const DocumentFrame*> framesAround(const PipelineDocument& document, const QRect& node) {
  std::vector<const DocumentFrame*> frames = innermostFirst(document);
  std::erase_if(frames,
                [&](const DocumentFrame* frame) { return frame->isNote() || !boxOf(*frame->area).contains(node); });
  return frames;
}

std::optional<FrameArea> areaAround(const PipelineDocument& document, const FrameContent& content,
                                    const NodeBoxes& nodes) {
  QRect box;
  for (const std::string& id : content.nodes) box = box.united(withRoom(nodes.at(id), kFrameMarginPx));
  for (const std::string& id : content.frames)
    box = box.united(withRoom(boxOf(*document.findFrame(id)->area), kNestedMarginPx));
  return box.isEmpty() ? std::nullopt : std::optional(areaOf(box));
}

FrameContent contentAround(const PipelineDocument& document, const std::vector<std::string>& chosen,
                           const NodeBoxes& nodes) {
  FrameContent content{.nodes = chosen, .frames = {}};
  for (const DocumentFrame* frame : drawnFrames(document)) {
    const std::vector<std::string> held = contentOf(document, *frame, nodes).nodes;
    if (!held.empty() && hasAll(chosen, held)) content.frames.push_back(frame->id);
  }
  return content;
}

std::vector<Edit> makeRoomFor(const PipelineDocument& document, const FrameArea& area,
                              const std::vector<std::string>& chosen, const NodeBoxes& nodes) {
  std::vector<Edit> edits;
  QRect inner = boxOf(area);
  for (const DocumentFrame* frame : innermostFirst(document)) {
    const std::vector<std::string> held = contentOf(document, *frame, nodes).nodes;
    const bool isAround = held.size() > chosen.size() && hasAll(held, chosen);
    if (!isAround || chosen.empty()) continue;
    DocumentFrame wider = *frame;
    wider.area = areaOf(boxOf(*frame->area).united(withRoom(inner, kNestedMarginPx)));
    inner = boxOf(*wider.area);
    if (wider != *frame) edits.emplace_back(ReplaceFrame{std::move(wider)});
  }
  return edits;
}

std::vector<NodeGroup> framedGroups(const PipelineDocument& document, const NodeBoxes& nodes) {
  std::vector<const DocumentFrame*> frames = innermostFirst(document);
  std::ranges::reverse(frames);
  std::vector<NodeGroup> groups;
  for (const DocumentFrame* frame : frames) {
    NodeGroup group = contentOf(document, *frame, nodes).nodes;
    if (std::ranges::all_of(groups, [&](const NodeGroup& outer) { return isNestedIn(outer, group); }))
      groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<Edit> refitFrames(const PipelineDocument& document, const NodeBoxes& before, const NodeBoxes& after) {
  PipelineDocument refitted = document;
  std::vector<Edit> edits;
  for (const DocumentFrame* frame : innermostFirst(document)) {
    const FrameContent content = contentOf(document, *frame, before);
    const auto hasMoved = [&](const std::string& id) { return before.at(id) != after.at(id); };
    if (std::ranges::none_of(content.nodes, hasMoved)) continue;
    DocumentFrame fitted = *frame;
    fitted.area = areaAround(refitted, content, after);
    if (fitted == *frame) continue;
    edits.emplace_back(ReplaceFrame{fitted});
    (void)applyEdit(refitted, edits.back());
  }
  return edits;
}

}  // namespace fuseline::ui
