// The steps of a run as markup: the plans as boxes, and a table with bars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/html.h"
#include "core/profile/comparison_text.h"
#include "core/profile/run_record.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline {

/// The fused plan, one box per step in the order of execution, containing the basic ops that it replaces.
Html planDrawing(const Comparison& comparison);

/// The ops of a row that are in a drawing on the page: the ids of their boxes, and their names.
struct DrawnOpName {
  std::string anchor;
  std::string name;
};
using OpsOfRows = std::vector<std::vector<DrawnOpName>>;

/// Rows that can be sorted, each entry with its basic ops beneath it; details of a step appear where one points at it.
/// ops: by row of the comparison; empty: there is no drawing.
Html stepTable(const RunRecord& record, const Comparison& comparison, const OpsOfRows& ops = {});

/// The step of the fused plan, if it has it; else of the unfused one. nullptr: neither has it.
const StepRecord* stepOf(const RunRecord& record, const ComparisonRow& row);

/// "step-3": the id of a row of the comparison within its page.
std::string rowAnchor(std::size_t row);

}  // namespace fuseline
