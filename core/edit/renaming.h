// Renaming: another id for a node of the pipeline, wherever the document names it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <string>

namespace fuseline {

/// Renames an op, an input or an output. Overrides of the recipe and switches of fusions at an op follow its new id;
/// wires always do.
Edit renameNode(const PipelineDocument& document, const std::string& id, const std::string& newId);

/// The same inside a block. Places in the recipe and among the switches that lead through its instances follow, and so
/// do the wires of instances where the input or output is a port of theirs.
Edit renameInBlock(const PipelineDocument& document, const std::string& block, const std::string& id,
                   const std::string& newId);

}  // namespace fuseline
