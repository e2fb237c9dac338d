// Layers that compute on [sequence, batch, ..] between two transposes of [batch, sequence, ..], such as attention of
// torch.nn with batch_first: without the transposes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/found_graph.h"

namespace fuseline {

/// Ops that treat tokens alike read the tensor before the first transpose, attention in the other format, and what
/// reads the second one reads the tensor before it. Left as they are: layers of which anything else reads a turned
/// tensor.
void turnTokens(FoundGraph& graph);

}  // namespace fuseline
