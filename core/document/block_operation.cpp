// Ports of an instance are the inputs and outputs of its block.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/block_operation.h"

#include "core/graph/graph.h"

#include <fmt/format.h>

namespace fuseline {

std::string instanceOf(std::string_view block) { return std::string(kBlockPrefix) + std::string(block); }

std::string_view blockNameOf(const DocumentOp& op) {
  const std::string_view operation = op.operation;
  return operation.starts_with(kBlockPrefix) ? operation.substr(kBlockPrefix.size()) : std::string_view();
}

std::vector<AttributeSpec> instanceAttributes() {
  return {
      {.name = kSequentialAttribute,
       .type = AttributeType::Boolean,
       .defaultValue = false,
       .help = "Treat the instance as a nested te.ops.Sequential: no fusion crosses its boundary. Off: its ops fuse "
               "as if the block were expanded."},
      {.name = kLayerAttribute,
       .optional = true,
       .minimum = 0.0,
       .maximum = kMostLayers - 1,
       .help = "Number of this layer, from 0. Layers from the value of the symbol layers on are left out. Since format "
               "1.6."}};
}

FusibleOperation blockOperation(std::string_view name, const DocumentBlock& block) {
  FusibleOperation operation{.name = instanceOf(name), .category = "Blocks"};
  operation.summary =
      fmt::format("A block of this pipeline: {} op{}.", block.ops.size(), block.ops.size() == 1 ? "" : "s");
  for (const DocumentInput& input : block.inputs) operation.inputs.push_back({input.id, {}, {}});
  for (const DocumentOutput& output : block.outputs) operation.outputs.push_back({output.id, {}, {}});
  operation.attributes = instanceAttributes();
  return operation;
}

}  // namespace fuseline
