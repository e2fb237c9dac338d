// The library's collectives, with shapes for several ranks, and with communication in place of views.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/collective_operations.h"

#include "core/ops/catalog.h"

#include <memory>
#include <string>

namespace fuseline {

namespace {

CommunicationPasses passesOf(std::string_view name) {
  if (name == "AllGather") return {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, false};
  if (name == kShardedInput) return {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, true};
  if (name == "ReduceScatter") return {CollectiveKind::ReduceScatter, CollectiveKind::AllGather, false};
  // TransformerEngine's backward of AllReduce does not communicate: the gradient is complete on every rank.
  if (name == "AllReduce") return {CollectiveKind::AllReduce, std::nullopt, false};
  return {std::nullopt, CollectiveKind::AllReduce, false};
}

}  // namespace

OperationPointer collectiveOperation(std::string_view name, int ranks) {
  const std::string_view shapes = name == kReplicatedInput ? "AllReduce" : name == kShardedInput ? "AllGather" : name;
  auto op = std::make_shared<FusibleOperation>(*builtinOperations().find(shapes));
  op->name = name;
  op->isView = false;
  op->note = {};
  op->communication = passesOf(name);
  op->infer = [infer = op->inferOnRanks, ranks](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer(attributes, inputs, ranks);
  };
  return op;
}

}  // namespace fuseline
