// The pipeline of a form: layers as instances of one block for each kind, between embedding and loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_form.h"
#include "core/support/json.h"

namespace fuseline {

/// As a pipeline file has it. Symbols are B, S and the sizes of the model.
Json modelPipeline(const ModelForm& form);

}  // namespace fuseline
