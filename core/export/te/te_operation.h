// How ops are written in Python: calls of te.ops with the arguments that TransformerEngine has for their attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_sequences.h"

#include <string>
#include <vector>

namespace fuseline {

/// What a script calls to divide sizes among the ranks; it must then define it.
inline constexpr const char* kTensorParallelSize = "tensor_parallel_size()";

/// An entry of a te.ops.Sequential.
struct TeOperation {
  std::string name;  // what its parameters are named after: "fc1"
  PythonCall call;   // te.ops.Bias(size=1024, device=device, dtype=torch.bfloat16)
  std::vector<NodeId> nodes;
  /// Statements behind it, with {} in place of the op: "{}.weight.requires_grad_(False)".
  std::vector<std::string> statements;
  /// What an attribute says that TransformerEngine has no argument for: "fc1: cpu_offloading is on, but ...".
  std::vector<std::string> notes;
};

/// The ops of a sequence, a Linear of the document in one piece where all its parts stand in it.
std::vector<TeOperation> teOperations(const PipelineDocument& document, const Graph& graph, const TeSequence& sequence);

/// "torch.bfloat16"; of dtypes that a pipeline's tensors have.
std::string torchType(DType dtype);

}  // namespace fuseline
