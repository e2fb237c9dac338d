// Edits that move ops into a block and out of it again. Pure functions from a document to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/edit/moved_places.h"
#include "core/support/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

struct NewBlock {
  Edit edit;
  std::string instance;  // the id of the op that takes the place of the chosen ones
  PlaceMoves moves;      // which the edit makes, too; a block's document has none to move
};

/// Moves ops into a new block and puts an instance of it in their place. Values from outside become the inputs
/// of the block, named after the consuming ports ("x", "extra"); results used outside become its outputs. Inputs that
/// are unconnected become inputs, and unused results outputs, too. Frames around selected ops only move inside.
/// Errors: no ops, a name that is taken, an op between two of them that is not chosen.
Result<NewBlock> makeBlock(const PipelineDocument& document, std::span<const std::string> ids, const std::string& name);

struct ExpandedBlock {
  Edit edit;
  std::vector<std::string> ids;  // of the ops that take the place of the instance
  PlaceMoves moves;              // as of a NewBlock
};

/// Replaces an instance by the ops and the frames of its block; ids that are taken get a number. The block stays in the
/// document. Errors: no such op, or it is no instance of a block of this document.
Result<ExpandedBlock> expandBlock(const PipelineDocument& document, std::string_view instance);

/// The blocks that instances among these ops need, inner ones included, in the order of the document.
std::vector<std::string> blocksUsedBy(const PipelineDocument& document, std::span<const DocumentOp> ops);

/// How many instances of a block the whole pipeline has: those inside other blocks count as often as these stand there.
std::ptrdiff_t numInstances(const PipelineDocument& document, std::string_view block);

}  // namespace fuseline
