// Sums over ranks and leaves each rank its slice.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/communication.h"
#include "core/ops/tensor_parallel.h"

namespace fuseline::ops {

namespace {
namespace reduce_scatter_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs, std::int64_t ranks) {
  Result<Shape> shape = scattered("ReduceScatter", inputs[0].shape, ranks);
  if (!shape) return shape.error();
  return OperationSpecs{.outputs = {{.dtype = inputs[0].dtype, .shape = std::move(*shape)}}};
}

}  // namespace reduce_scatter_parts
}  // namespace

BasicOperation reduce_scatter() {
  using namespace reduce_scatter_parts;
  return communication({
      .name = "ReduceScatter",
      .summary = "Sums x over all ranks and keeps this rank's slice of the first axis. On one rank y is x.",
      .formula = "y = slice of this rank of (x of rank 0 + ... + x of rank P-1)",
      .derivative = "dx = concat(dy of rank 0, ..., dy of rank P-1) (an all-gather)",
      .source = "TransformerEngine te.ops.ReduceScatter, without its process_group: there is one group of all ranks",
      .keywords = {"collective", "communication", "tensor parallel", "sequence parallel", "nccl", "mpi"},
      .inputs = {{"x", "[M, ...]", "This rank's partial sum; M must be a multiple of the number of ranks, P."}},
      .outputs = {{"y", "[M / P, ...]", "This rank's slice of the sum."}},
      .inferOnRanks = infer,
  });
}

}  // namespace fuseline::ops
