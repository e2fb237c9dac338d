// Tables for the program of an exported pipeline: inputs, parameters, the plan and tolerances.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/te_module.h"
#include "core/export/te/te_sequences.h"
#include "core/fusion/fuser.h"

#include <string>
#include <vector>

namespace fuseline {

/// Assignments of Python. capability: "9.0", which the report is planned for.
std::string teTables(const Graph& graph, const FusionReport& report, const std::string& capability,
                     const std::vector<TeModule>& modules, const std::vector<ModuleBetween>& between);

}  // namespace fuseline
