// Linear transformation with an optional bias: the composite of BasicLinear and Bias.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {

void copyIfSet(const Attributes& from, std::string_view name, Attributes& to) {
  if (from.has(name)) to.set(std::string(name), from.get(name));
}

ExpandedOperation linearPart(const Attributes& attributes) {
  ExpandedOperation part{.suffix = "linear", .operation = "BasicLinear"};
  for (const char* name : {"in_features", "out_features", "dtype", "tensor_parallel_mode"})
    copyIfSet(attributes, name, part.attributes);
  return part;
}

ExpandedOperation biasPart(const Attributes& attributes) {
  ExpandedOperation part{.suffix = "bias", .operation = "Bias"};
  part.attributes.set("size", attributes.get("out_features"));
  copyIfSet(attributes, "dtype", part.attributes);
  return part;
}

std::vector<ExpandedOperation> expand(const Attributes& attributes) {
  std::vector<ExpandedOperation> parts = {linearPart(attributes)};
  if (attributes.boolean("bias")) parts.push_back(biasPart(attributes));
  return parts;
}

}  // namespace

CompositeOperation linear() {
  return {
      .name = "Linear",
      .category = "Linear",
      .summary = "Multiplies every row by a weight matrix and adds a bias: BasicLinear, then Bias.",
      .formula = "y = x W^T + b",
      .derivative = "dx = dy W; dW = dy^T x and db = dy, both summed over all rows",
      .source = "Initialisation: He et al. 2015, arXiv:1502.01852, with a = sqrt(5); the bias starts at 0",
      .keywords = {"matmul", "gemm", "fc", "dense", "projection", "fully connected"},
      .inputs = {{"x", "[..., K]", "K is in_features."}},
      .parameters = {{"weight", "[N, K]", "One row for each output feature."},
                     {"bias", "[N]", "Only with bias = true."}},
      .outputs = {{"y", "[..., N]", "N is out_features; the dtype is the weight's."}},
      .attributes = {featuresAttribute("in_features", "Elements of each input row, K."),
                     featuresAttribute("out_features", "Elements of each output row, N."),
                     {.name = "bias",
                      .type = AttributeType::Boolean,
                      .defaultValue = true,
                      .help = "Adds a learned vector to every row."},
                     dtypeAttribute(),
                     tensorParallelModeAttribute()},
      .expand = expand,
  };
}

}  // namespace fuseline::ops
