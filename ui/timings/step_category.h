// The category of a measured step, for its color on the timeline and in the roofline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/profile/run_record.h"

#include <string>

namespace fuseline::ui {

/// graph: of the pipeline that ran; may be nullptr, and then the kernel's name stands in.
std::string categoryOf(const StepRecord& step, const Graph* graph);

}  // namespace fuseline::ui
