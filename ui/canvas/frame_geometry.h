// Contents of a frame, and the size of a frame around contents. In scene pixels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "ui/canvas/arrange.h"
#include "ui/canvas/places/auto_layout.h"

#include <QRect>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

QRect boxOf(const FrameArea& area);
FrameArea areaOf(const QRect& box);

/// Items whose whole box is inside a frame.
struct FrameContent {
  std::vector<std::string> nodes;
  std::vector<std::string> frames;
};
/// A note holds nothing.
FrameContent contentOf(const PipelineDocument& document, const DocumentFrame& frame, const NodeBoxes& nodes);

/// Frames that contain a node with this box, inner ones first.
std::vector<const DocumentFrame*> framesAround(const PipelineDocument& document, const QRect& node);

/// Area of a frame around the content, on the grid; nullopt if the content is empty.
std::optional<FrameArea> areaAround(const PipelineDocument& document, const FrameContent& content,
                                    const NodeBoxes& nodes);

/// Nodes, and frames around some of these nodes alone, which come to lie in a new one around them.
FrameContent contentAround(const PipelineDocument& document, const std::vector<std::string>& chosen,
                           const NodeBoxes& nodes);
/// Makes frames around the chosen nodes and others wide enough for a new one in them, inner ones first.
std::vector<Edit> makeRoomFor(const PipelineDocument& document, const FrameArea& area,
                              const std::vector<std::string>& chosen, const NodeBoxes& nodes);

/// Groups of nodes that frames hold together, for the automatic layout; of two overlapping frames the larger one
/// counts.
std::vector<NodeGroup> framedGroups(const PipelineDocument& document, const NodeBoxes& nodes);

/// Frames whose nodes are elsewhere now, each around what was in it, inner ones first. Locked ones, too: they would
/// stand around something else.
std::vector<Edit> refitFrames(const PipelineDocument& document, const NodeBoxes& before, const NodeBoxes& after);

}  // namespace fuseline::ui
