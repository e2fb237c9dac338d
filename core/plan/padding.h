// Padding: which sizes of a document to raise so that a layer fits the scalings of its recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"
#include "core/lowering/lowering.h"
#include "core/quant/recipe.h"

#include <vector>

namespace fuseline {

/// Gives every warning "recipe-shape" the edits that raise one size of the document, a symbol or a number wherever it
/// is written, to the next one with which the layer is quantized and the pipeline has no error. Each was tried. Sizes
/// that `options` set are left alone.
void addPaddingRepairs(const PipelineDocument& document, const LoweringOptions& options, const Recipe& recipe,
                       std::vector<Diagnostic>& diagnostics);

}  // namespace fuseline
