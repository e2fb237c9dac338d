// Padding: which sizes of a document to raise so that a layer fits the scalings of its recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"
#include "core/lowering/lowering.h"
#include "core/quant/recipe.h"

#include <vector>

namespace fuseline {

/// Adds to every warning "recipe-shape" the edits that raise one size of the document, a symbol or a number at all of
/// its places, to the next value for which the layer is quantized and the pipeline has no error. Each edit was tried.
/// Sizes that `options` set are not changed.
void addPaddingRepairs(const PipelineDocument& document, const LoweringOptions& options, const Recipe& recipe,
                       std::vector<Diagnostic>& diagnostics);

}  // namespace fuseline
