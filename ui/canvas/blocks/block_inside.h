// BlockInside: the ops of a block as the canvas shows them within an instance that is open in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"
#include "ui/canvas/node_look.h"
#include "ui/canvas/places/auto_layout.h"

#include <QSizeF>

#include <vector>

namespace fuseline::ui {

struct BlockInside {
  std::vector<NodeLook> looks;  // with the inputs and outputs of the block
  NodePositions places;         // within the node of the instance
  std::vector<Link> links;
  QSizeF size;  // of that node
};

/// Inputs and outputs of a block without a place of their own go before its first op and after its last one.
void placePorts(NodePositions& places, const PipelineDocument& block);

/// Where nodes stand: as in the document, else automatic. isBlock: the document is the inside of a block.
NodePositions nodePlaces(const PipelineDocument& document, const std::vector<NodeLook>& looks, bool isBlock);

/// block: the inside as a pipeline, with the analysis of one instance.
BlockInside blockInside(const PipelineDocument& block, const Analysis& analysis);

}  // namespace fuseline::ui
