// How ops are written in Python: calls of te.ops with the arguments that TransformerEngine has for their attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_sequences.h"

#include <string>
#include <vector>

namespace fuseline {

/// Call that divides sizes among the ranks; a script that uses it must define the function.
inline constexpr const char* kTensorParallelSize = "tensor_parallel_size()";

/// An entry of a te.ops.Sequential.
struct TeOperation {
  std::string name;  // prefix of its parameters' names: "fc1"
  PythonCall call;   // te.ops.Bias(size=1024, device=device, dtype=torch.bfloat16)
  std::vector<NodeId> nodes;
  /// Statements after it, with {} in place of the op: "{}.weight.requires_grad_(False)".
  std::vector<std::string> statements;
  /// Attributes for which TransformerEngine has no argument: "fc1: cpu_offloading is on, but ...".
  std::vector<std::string> notes;
};

/// The ops of a sequence; a Linear of the document is one op if all its parts are in the sequence.
std::vector<TeOperation> teOperations(const PipelineDocument& document, const Graph& graph, const TeSequence& sequence);

/// Names of the parameters in te.ops at a slot; "{}" stands for the number of the group where it is written apart.
std::string teParameterName(const Node& node, int slot);

/// "torch.bfloat16"; for dtypes of a pipeline's tensors.
std::string torchType(DType dtype);

}  // namespace fuseline
