// Rebuilds the graph node by node, with collectives where layers are parallel.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/rank_graph.h"

#include "core/ops/rank_attributes.h"
#include "core/sharding/collective_operations.h"
#include "core/support/to_index.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

class RankGraphMaker {
 public:
  RankGraphMaker(const Graph& whole, Placements placements, int rank, int ranks)
      : m_whole(whole),
        m_placements(std::move(placements)),
        m_rank(rank),
        m_ranks(ranks),
        m_values(whole.values().size(), -1) {}

  Result<RankGraph> make() {
    m_builder.copySequentials(m_whole);
    for (const ValueId id : m_whole.inputs())
      if (Result<void> added = addInput(id); !added) return added.error();
    for (NodeId id = 0; id < static_cast<NodeId>(m_whole.nodes().size()); ++id)
      if (Result<void> added = addNode(id); !added) return added.error();
    for (const GraphOutput& output : m_whole.outputs()) {
      m_builder.addOutput(output.name, mapped(output.value));
      noteShard(output.name, shardOf(output.value));
    }
    m_made.graph = std::move(m_builder).finish(m_whole.pass()).withOptimizer(m_whole.optimizer());
    m_made.notes = std::move(m_placements.notes);
    noteOptimizer();
    return std::move(m_made);
  }

 private:
  const Shard& shardOf(ValueId id) const { return m_placements.values[toIndex(id)]; }
  ValueId& mapped(ValueId id) { return m_values[toIndex(id)]; }

  void noteShard(const std::string& name, const Shard& shard) {
    m_made.shards[name] = shard;
    // The gradient of a sum is that of each summand.
    m_made.shards["grad." + name] = shard.kind == Shard::Kind::Summand ? Shard() : shard;
  }

  Result<void> addInput(ValueId id) {
    const Value& value = m_whole.value(id);
    Result<Shape> shape = shardShape(value.spec.shape, shardOf(id), m_ranks);
    if (!shape) return Error{fmt::format("{}: {}", value.name, shape.error().message)};
    mapped(id) = m_builder.addInput(value.name, {.dtype = value.spec.dtype, .shape = std::move(*shape)},
                                    m_whole.pass() == ExecutionMode::Inference || value.needsGradient);
    noteShard(value.name, shardOf(id));
    return {};
  }

  Result<void> addNode(NodeId id) {
    const Node& node = m_whole.node(id);
    switch (m_placements.roles[toIndex(id)]) {
      case RankRole::Collective: return addCollective(id, node);
      case RankRole::Column: return addColumn(id, node);
      case RankRole::Row: return addRow(id, node);
      case RankRole::RowPart: return addLinear(id, node, mappedInputs(node));
      case RankRole::Alone: break;
    }
    Result<NodeId> made = add(node, node.id, node.operation, localAttributes(id, node), mappedInputs(node));
    if (!made) return made.error();
    if (hasPartialGradients(m_whole, m_placements, id)) m_builder.markPartialGradients(*made);
    return take(id, *made);
  }

  std::vector<ValueId> mappedInputs(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    return inputs;
  }

  Result<NodeId> add(const Node& from, std::string id, OperationPointer operation, Attributes attributes,
                     std::vector<ValueId> inputs) {
    Result<NodeId> made =
        m_builder.addNode(std::move(id), from.owner, std::move(operation), std::move(attributes), std::move(inputs));
    if (!made) return Error{fmt::format("{}: {}", from.id, made.error().message)};
    m_builder.copyPlace(*made, from);
    return made;
  }

  /// "fc1.linear.gather": y of a collective on x.
  Result<ValueId> addCommunication(const Node& from, std::string_view suffix, std::string_view operation, ValueId x) {
    const Result<NodeId> made =
        add(from, fmt::format("{}.{}", from.id, suffix), collectiveOperation(operation, m_ranks), {}, {x});
    if (!made) return made.error();
    return outputOf(*made);
  }

  ValueId outputOf(NodeId made) const { return m_builder.partial().node(made).outputs.front(); }

  /// The outputs of a node of the whole model are those of this one.
  Result<void> take(NodeId id, NodeId made) {
    const Node& node = m_whole.node(id);
    const Node& local = m_builder.partial().node(made);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      mapped(node.outputs[port]) = local.outputs[port];
      noteShard(fmt::format("{}:{}", local.id, local.operation->outputs[port].name), shardOf(node.outputs[port]));
    }
    noteParameters(id);
    if (!node.parameters.empty()) markParameters(parameterShard(m_whole, m_placements, id, 0), made);
    return checkParameters(id, local);
  }

  /// Each rank has the whole gradient of a bias that they add up, so rank 0 alone updates it; the others hold zeros.
  void markParameters(const Shard& shard, NodeId made) {
    if (shard.isSlice()) m_builder.markShardedParameters(made);
    if (shard.kind == Shard::Kind::Summand && m_rank > 0) m_builder.markFrozenParameters(made);
  }

  void noteParameters(NodeId id) {
    const Node& node = m_whole.node(id);
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) {
      const Shard gradient = parameterGradientShard(m_whole, m_placements, id, slot);
      m_made.shards[node.parameterName(slot)] = parameterShard(m_whole, m_placements, id, slot);
      m_made.shards[node.parameterGradientName(slot)] = gradient;
    }
  }

  /// The optimizer's state is shared as the parameter is.
  void noteOptimizer() {
    if (m_whole.optimizer())
      for (const std::string_view name : {kOptimizerStep, kGradientSquares}) m_made.shards[std::string(name)] = {};
    for (const TrainedParameter& parameter : trainedParameters(m_whole)) {
      const Shard shard = m_made.shards[parameter.name];
      for (std::string& state : parameter.stateNames()) m_made.shards[std::move(state)] = shard;
    }
  }

  /// Shards have the shapes that the local op infers, if the parts of an axis can be shared.
  Result<void> checkParameters(NodeId id, const Node& local) const {
    const Node& node = m_whole.node(id);
    for (std::size_t slot = 0; slot < node.parameters.size(); ++slot) {
      const Shard shard = parameterShard(m_whole, m_placements, id, static_cast<int>(slot));
      const Result<Shape> shape = shardShape(node.parameters[slot].shape, shard, m_ranks);
      if (!shape)
        return Error{fmt::format("{}: {}", node.parameterName(static_cast<int>(slot)), shape.error().message)};
      if (*shape != local.parameters[slot].shape)
        return Error{fmt::format("{}: each of {} ranks would hold {}, but {} needs {}.",
                                 node.parameterName(static_cast<int>(slot)), m_ranks, toString(*shape), node.id,
                                 toString(local.parameters[slot].shape))};
    }
    return {};
  }

  Result<void> addCollective(NodeId id, const Node& node) {
    const Result<NodeId> made =
        add(node, node.id, collectiveOperation(node.operation->name, m_ranks), node.attributes, mappedInputs(node));
    return made ? take(id, *made) : made.error();
  }

  Result<void> addColumn(NodeId id, const Node& node) {
    const bool isSequenceParallel = shardOf(node.inputs[0]).isSlice();
    const Result<ValueId> x = isSequenceParallel
                                  ? addCommunication(node, "gather", kShardedInput, mapped(node.inputs[0]))
                                  : addCommunication(node, "sum_gradients", kReplicatedInput, mapped(node.inputs[0]));
    if (!x) return x.error();
    return addLinear(id, node, {*x});
  }

  Result<void> addRow(NodeId id, const Node& node) {
    if (Result<void> added = addLinear(id, node, mappedInputs(node)); !added) return added;
    ValueId& y = mapped(node.outputs[0]);
    const bool isSequenceParallel = shardOf(node.outputs[0]).isSlice();
    const Result<ValueId> sum = addCommunication(node, "sum", isSequenceParallel ? "ReduceScatter" : "AllReduce", y);
    if (!sum) return sum.error();
    noteShard(fmt::format("{}.sum:y", node.id), shardOf(node.outputs[0]));
    y = *sum;
    noteShard(node.id + ":y", {.kind = Shard::Kind::Summand});
    return {};
  }

  Result<void> addLinear(NodeId id, const Node& node, std::vector<ValueId> inputs) {
    Attributes attributes = node.attributes;
    const bool isColumn = m_placements.roles[toIndex(id)] == RankRole::Column;
    const char* const split = isColumn ? "out_features" : "in_features";
    const std::int64_t features = node.attributes.integer(split);
    if (features % m_ranks != 0)
      return Error{fmt::format("{}: {} is {}, which {} ranks cannot share equally; it must be a multiple of {}.",
                               node.id, split, features, m_ranks, m_ranks)};
    attributes.set(split, features / m_ranks);
    attributes.set("tensor_parallel_mode", std::string("none"));
    attributes.set("sequence_parallel", false);
    attributes.set(kRankAttribute, std::int64_t{m_rank});
    const Result<NodeId> made = add(node, node.id, node.operation, std::move(attributes), std::move(inputs));
    return made ? take(id, *made) : made.error();
  }

  Attributes localAttributes(NodeId id, const Node& node) const {
    Attributes attributes = node.attributes;
    const std::string& name = node.operation->name;
    if (name == "Bias" && parameterShard(m_whole, m_placements, id, 0).isSlice()) {
      attributes.set("size", node.attributes.integer("size") / m_ranks);
      attributes.set("tensor_parallel", false);
    }
    if (name == "Reshape") shareAxis(shardOf(node.outputs[0]), attributes);
    if (name == "Dropout" && shardOf(node.inputs[0]).isSlice())
      attributes.set(kFirstElementAttribute, m_whole.value(node.inputs[0]).spec.numElements() / m_ranks * m_rank);
    return attributes;
  }

  /// An extent of -1 follows from the others.
  void shareAxis(const Shard& shard, Attributes& attributes) const {
    if (!shard.isSlice()) return;
    Shape shape = attributes.integers("shape");
    std::int64_t& extent = shape[toIndex(shard.axis)];
    if (extent > 0) extent /= m_ranks;
    attributes.set("shape", shape);
  }

  const Graph& m_whole;
  Placements m_placements;
  int m_rank;
  int m_ranks;
  std::vector<ValueId> m_values;  // of the rank, by value of the whole model
  GraphBuilder m_builder;
  RankGraph m_made;
};

}  // namespace

Result<RankGraph> rankGraph(const Graph& whole, int rank, int ranks) {
  Result<Placements> placements = inferPlacements(whole, ranks);
  if (!placements) return placements.error();
  return RankGraphMaker(whole, std::move(*placements), rank, ranks).make();
}

}  // namespace fuseline
