// The External ops of a pipeline, as modules between TransformerEngine's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/export/te/te_sequences.h"

#include <vector>

namespace fuseline {

/// In an order in which each reads outputs of earlier ones. `graph` is lowered from the document, with the document's
/// values of its symbols.
std::vector<ModuleBetween> modulesBetween(const PipelineDocument& document, const Graph& graph);

}  // namespace fuseline
