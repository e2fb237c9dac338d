// The steps of a run as markup: the plans as boxes, and a table with bars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/html.h"
#include "core/profile/comparison_text.h"
#include "core/profile/run_record.h"

namespace fuseline {

/// The fused plan, a box a step in the order of execution, with the basic ops that it replaces within it.
Html planDrawing(const Comparison& comparison);

/// Rows that can be sorted, each entry with its basic ops beneath it; details of a step appear where one points at it.
Html stepTable(const RunRecord& record, const Comparison& comparison);

}  // namespace fuseline
