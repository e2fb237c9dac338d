// Required attributes that follow from the tensors at an op's inputs, for new ops and for new wires.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/edit_script.h"
#include "core/graph/graph.h"
#include "core/ops/operation.h"

#include <string>

namespace fuseline {

/// Required sizes start with the width of the upstream tensor, or with the only symbol that has its value. Empty
/// without a source.
Json guessAttributes(const PipelineDocument& document, const FusibleOperation& operation, const Value* source);

/// Sets the missing required attributes of `start` and of the ops downstream, as far as their input tensors are known.
/// Runs a trial lowering for each generation of ops that it fills; none where nothing is missing.
void fillAttributes(EditScript& script, const std::string& start);

/// Connects two ports as linkEdit() does, and fills the attributes that follow from the new wire.
Edit connectEdit(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);

}  // namespace fuseline
