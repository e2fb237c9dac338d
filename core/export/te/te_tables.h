// Tables for the program of an exported pipeline: inputs, parameters, the plan and tolerances.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/te_module.h"
#include "core/export/te/te_sequences.h"
#include "core/fusion/fuser.h"
#include "core/support/json.h"

#include <string>
#include <vector>

namespace fuseline {

/// Assignments of Python. capability: "9.0", which the report is planned for.
std::string teTables(const Graph& graph, const FusionReport& report, const std::string& capability,
                     const std::vector<TeModule>& modules, const std::vector<ModuleBetween>& between);

/// The tables INPUTS, with what programs draw their inputs from, and OUTPUTS.
enum class ScriptTable { TransformerEngine, Torch };
std::string inputTables(const Graph& graph, ScriptTable table);
/// Relative, of norms, for --check.
double scriptTolerance(const Graph& graph);
/// The table WEIGHTS, and load_weights() if it has entries.
std::string weightsText(const Json& table);
/// compare_tensors(), which calls the step() of the script.
std::string tensorsProgram();

}  // namespace fuseline
