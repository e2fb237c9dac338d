// Concatenates the shards of all ranks.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/communication.h"
#include "core/ops/tensor_parallel.h"

namespace fuseline::ops {

namespace {
namespace all_gather_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs, std::int64_t ranks) {
  Result<Shape> shape = gathered("AllGather", inputs[0].shape, ranks);
  if (!shape) return shape.error();
  return OperationSpecs{.outputs = {{.dtype = inputs[0].dtype, .shape = std::move(*shape)}}};
}

}  // namespace all_gather_parts
}  // namespace

BasicOperation all_gather() {
  using namespace all_gather_parts;
  return communication({
      .name = "AllGather",
      .summary = "Concatenates the x of all ranks along the first axis. On one rank y is x.",
      .formula = "y = concat(x of rank 0, ..., x of rank P-1)",
      .derivative = "dx = this rank's slice of the sum of dy over all ranks (a reduce-scatter)",
      .source = "TransformerEngine te.ops.AllGather, without its process_group: there is one group of all ranks",
      .keywords = {"collective", "communication", "tensor parallel", "sequence parallel", "nccl", "mpi"},
      .inputs = {{"x", "[M, ...]", "This rank's shard."}},
      .outputs = {{"y", "[M * P, ...]", "The shards of all P ranks, in the order of the ranks."}},
      .inferOnRanks = infer,
  });
}

}  // namespace fuseline::ops
