// One op as a member of a PyTorch module: how it is made, and the statement that calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/python_text.h"
#include "core/graph/graph.h"
#include "core/support/result.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// A class of the script, without its name: the text after "class NAME".
struct TorchClass {
  std::string stem;  // "SwiGLU"
  std::string text;
};

struct TorchMember {
  /// "torch.nn.Linear(...)"; an empty callee for an op without state, which `expression` writes. With ofClass the
  /// callee is the name that the class is given.
  PythonCall constructor;
  std::optional<TorchClass> ofClass;
  /// With {} in place of each argument in turn: "{} + {}"; empty: the member is called with all inputs.
  std::string expression;
  /// Inputs after these are given by the names of their ports.
  std::size_t numUnnamed = std::numeric_limits<std::size_t>::max();
  /// Names of its parameters inside the member, by slot.
  std::vector<std::string> parameters;
};

/// Errors: a sentence that names the op and the next step.
Result<TorchMember> torchMember(const Graph& graph, NodeId node);
/// torch.nn.Linear of a BasicLinear and a Bias.
TorchMember torchLinear(const Node& linear, bool hasBias);

}  // namespace fuseline
