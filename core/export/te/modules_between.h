// The ops External of a pipeline, as modules between what TransformerEngine runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/export/te/te_sequences.h"

#include <vector>

namespace fuseline {

/// In an order in which each reads what earlier ones made. `graph` is lowered from the document, with the values that
/// its symbols have there.
std::vector<ModuleBetween> modulesBetween(const PipelineDocument& document, const Graph& graph);

}  // namespace fuseline
