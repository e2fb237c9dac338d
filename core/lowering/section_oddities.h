// Problems of a section as a whole: no outputs, or inputs and results without readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/lowering/section.h"

#include <vector>

namespace fuseline {

/// isUnreadable: the document is of a file that could not be read. isInputKnown: by input of the pipeline.
void reportOddities(DiagnosticSink& sink, const PipelineDocument& document, bool isUnreadable, const Section& section,
                    const std::vector<bool>& isInputKnown);

}  // namespace fuseline
