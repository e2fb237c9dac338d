// The table in a pipeline file that says under which names a model's own safetensors files hold the parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/profile/run_spec.h"
#include "core/support/json.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>

namespace fuseline {

struct ModelForm;

/// Section "weights" of the pipeline file: a list of {"parameter", "tensors", "order"}, as WeightSource; the heads of
/// order heads_together are beside it as "heads", the tensor of all experts of order experts as "together", and the
/// rows of each tensor as "rows" where they differ. "shape" and "first" are written if the source has them.
Json weightTable(const ModelForm& form);
/// The section of a document, without malformed entries; an empty list where it has none.
Json weightTable(const PipelineDocument& document);

/// Tensors for a run or an export with these values of symbols. path: a safetensors file with Fuseline's names; or, for
/// a pipeline with a table, one with the model's own names or a folder of such files; or a folder with the files of all
/// ranks of a run. Inputs and gradients that the file has, too, are kept. Errors: those of readSafetensors(),
/// readRankFiles() and readModelWeights().
Result<NamedTensors> readTensors(const PipelineDocument& document, const std::filesystem::path& path,
                                 const NamedNumberList& symbols = {});

/// The same tensors with the parameters under the names, and in the order, of the model's own files, which transformers
/// loads; others keep their names. Errors (Usage): the pipeline has no table; a parameter does not fit it.
Result<NamedTensors> withModelNames(const PipelineDocument& document, NamedTensors tensors);

}  // namespace fuseline
