// Sums over ranks.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/communication.h"

namespace fuseline::ops {

namespace {
namespace all_reduce_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs, std::int64_t) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

}  // namespace all_reduce_parts
}  // namespace

BasicOperation all_reduce() {
  using namespace all_reduce_parts;
  return communication({
      .name = "AllReduce",
      .summary = "Sums x over all ranks. Backward does not communicate: the following ops are replicated on all ranks, "
                 "so dy is already complete. On one rank y is x.",
      .formula = "y = x of rank 0 + ... + x of rank P-1",
      .derivative = "dx = dy",
      .source = "TransformerEngine te.ops.AllReduce, without its process_group, and without reduce_in_backward, which "
                "it never reads",
      .keywords = {"collective", "communication", "tensor parallel", "sum", "nccl", "mpi"},
      .inputs = {{"x", "[...]", "This rank's partial sum."}},
      .outputs = {{"y", "[...]", "The sum, the same on all ranks."}},
      .inferOnRanks = infer,
  });
}

}  // namespace fuseline::ops
