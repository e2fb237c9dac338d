// Linear transformation with an optional bias: the composite of BasicLinear and Bias.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/parameters.h"
#include "core/ops/shared_attributes.h"
#include "core/ops/tensor_parallel.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fuseline::ops {

namespace {

void copyIfSet(const Attributes& from, std::string_view name, Attributes& to) {
  if (from.has(name)) to.set(std::string(name), from.get(name));
}

/// A row-parallel layer multiplies its shards of x and weight like any other; a following op sums over the ranks.
Result<ExpandedOperation> linearPart(const Attributes& attributes, bool isRow, std::int64_t ranks) {
  ExpandedOperation part{.suffix = "linear", .operation = "BasicLinear"};
  for (const char* name : {"in_features", "out_features", "dtype", "weight_requires_grad", "accumulate_into_main_grad",
                           "overwrite_main_grad", "userbuffers_comm_name"})
    copyIfSet(attributes, name, part.attributes);
  if (!isRow) {
    for (const char* name : {"tensor_parallel_mode", "sequence_parallel"}) copyIfSet(attributes, name, part.attributes);
    return part;
  }
  const auto K = shareOf("Linear", "in_features", attributes.integer("in_features"), ranks);
  if (!K) return K.error();
  part.attributes.set("in_features", *K);
  part.attributes.set("tensor_parallel_mode", std::string("none"));
  return part;
}

/// Column: every rank has its shard. Row: every rank has its own bias of full width, a shard of out_features * ranks
/// elements; the sum over the ranks adds all of them.
ExpandedOperation biasPart(const Attributes& attributes, bool isRow, std::int64_t ranks) {
  ExpandedOperation part{.suffix = "bias", .operation = "Bias"};
  part.attributes.set("size", attributes.get("out_features"));
  if (isRow) part.attributes.set("size", attributes.integer("out_features") * ranks);
  for (const char* name : {"dtype", "bias_requires_grad"}) copyIfSet(attributes, name, part.attributes);
  part.attributes.set("tensor_parallel", attributes.text("tensor_parallel_mode") != "none");
  return part;
}

ExpandedOperation sumPart(const Attributes& attributes) {
  return {.suffix = "sum",
          .operation = attributes.boolean("sequence_parallel") ? "ReduceScatter" : "AllReduce",
          .attributes = {}};
}

std::vector<ExpandedOperation> expanded(const Attributes& attributes) { return *linearParts(attributes, kRanks); }

}  // namespace

Result<std::vector<ExpandedOperation>> linearParts(const Attributes& attributes, std::int64_t ranks) {
  const bool isRow = attributes.text("tensor_parallel_mode") == "row";
  Result<ExpandedOperation> linear = linearPart(attributes, isRow, ranks);
  if (!linear) return linear.error();
  std::vector<ExpandedOperation> parts = {std::move(*linear)};
  if (attributes.boolean("bias")) parts.push_back(biasPart(attributes, isRow, ranks));
  if (isRow) parts.push_back(sumPart(attributes));
  return parts;
}

CompositeOperation linear() {
  CompositeOperation op{
      .name = "Linear",
      .category = "Linear",
      .summary = "Multiplies every row by a weight matrix and adds a bias: BasicLinear, then Bias.",
      .formula = "y = x W^T + b",
      .derivative = "dx = dy W; dW = dy^T x and db = dy, both summed over all rows",
      .source = "Initialisation: He et al. 2015, arXiv:1502.01852, with a = sqrt(5); the bias starts at 0",
      .keywords = {"matmul", "gemm", "fc", "dense", "projection", "fully connected"},
      .inputs = {{"x", "[..., K]", "K is in_features."}},
      .parameters =
          {{"weight", "[N, K]", "One row for each output feature."},
           {"bias", "[N]",
            "Only with bias = true. If row-parallel, every rank adds its own bias: load it on one rank only."}},
      .outputs = {{"y", "[..., N]", "N is out_features; the dtype is the weight's."}},
      .attributes = {featuresAttribute("in_features", "Elements of each input row, K."),
                     featuresAttribute("out_features", "Elements of each output row, N."),
                     booleanAttribute("bias", true, "Adds a learned vector to every row."), dtypeAttribute(),
                     tensorParallelModeAttribute(), sequenceParallelAttribute(), userbuffersAttribute()},
      .expand = expanded,
  };
  std::ranges::move(mainGradAttributes(), std::back_inserter(op.attributes));
  return op;
}

}  // namespace fuseline::ops
