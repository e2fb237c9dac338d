// Problems of a pipeline that has no ops yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"

#include <vector>

namespace fuseline::ui {

/// Without an op nothing is wrong yet: missing connections become one note with the next step. Other problems stay.
void noteIfBlank(const PipelineDocument& document, std::vector<Diagnostic>& problems);

}  // namespace fuseline::ui
