// The order in which an edited pipeline is written: the same pipeline gives the same file, however it was edited.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/edit/history.h"

namespace fuseline {

/// Ops in the order in which the outputs need them, producers first and sources in the order of the input ports; ops
/// that no output needs follow, by id. Attributes in the order of the op's declaration, wires by reader and port,
/// positions as the nodes. Inputs and outputs keep their order: they are the signature of the pipeline and of its
/// blocks. So do symbols and frames. The meaning of the document does not change.
PipelineDocument inCanonicalOrder(PipelineDocument document);

/// The document to be saved: in canonical order once it was edited, else as it was opened, so that opening and saving
/// a file does not change it.
PipelineDocument documentToSave(const History& history);

}  // namespace fuseline
