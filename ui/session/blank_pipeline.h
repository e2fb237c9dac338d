// The analysis of a pipeline that may have no ops yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <memory>

namespace fuseline::ui {

/// Analyzes a document. Without an op nothing is wrong yet: missing connections become one note with the next step.
/// Other problems stay.
std::shared_ptr<const Analysis> analyzeToShow(const PipelineDocument& document, const AnalysisOptions& options);

}  // namespace fuseline::ui
