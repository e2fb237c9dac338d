// The classes of a PyTorch script: one for each block, whose instances are members of the pipeline's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/support/result.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

struct TorchModules {
  /// Class definitions, the pipeline's last.
  std::string classes;
  /// Names of parameters, and their places in the pipeline's module.
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// description: docstring of the pipeline's class. Errors: those of torchMember().
Result<TorchModules> torchModules(const Graph& graph, const std::string& description);

}  // namespace fuseline
