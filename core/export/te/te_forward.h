// forward() of an exported pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/te_module.h"
#include "core/export/te/te_sequences.h"

#include <string>
#include <vector>

namespace fuseline {

/// The method, indented as one of a class. betweenNames: the members that hold the modules in between.
std::string teForward(const Graph& graph, const std::vector<TeModule>& modules,
                      const std::vector<ModuleBetween>& between, const std::vector<std::string>& betweenNames);

}  // namespace fuseline
