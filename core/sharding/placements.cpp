// Values that an op reads and writes alike are in one group; ops that care say what their group is.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/placements.h"

#include "core/ops/tensor_parallel.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

enum class Kind { Whole, Rows, Features, Summand };

std::string_view nameOf(Kind kind) {
  switch (kind) {
    case Kind::Whole: return "replicated on every rank";
    case Kind::Rows: return "sharded by rows";
    case Kind::Features: return "sharded by features";
    case Kind::Summand: return "a partial sum on each rank";
  }
  return "";
}

/// Groups of numbers that are joined two by two.
class Groups {
 public:
  explicit Groups(std::size_t count) : m_parents(count) { std::iota(m_parents.begin(), m_parents.end(), 0); }
  int of(int member) {
    int& parent = m_parents[toIndex(member)];
    return parent == member ? member : parent = of(parent);
  }
  void join(int a, int b) { m_parents[toIndex(of(a))] = of(b); }

 private:
  std::vector<int> m_parents;
};

template <std::size_t N>
bool isOneOf(const Node& node, const std::array<std::string_view, N>& names) {
  return std::ranges::count(names, node.operation->name) > 0;
}

bool isNorm(const Node& node) {
  constexpr std::array<std::string_view, 3> kNorms = {"LayerNorm", "RMSNorm", "L2Normalization"};
  return isOneOf(node, kNorms);
}

/// y of a partial sum is a partial sum of y.
bool keepsSummands(const Node& node) {
  constexpr std::array<std::string_view, 4> kLinear = {"Bias", "Identity", "ConstantScale", "Quantize"};
  return isOneOf(node, kLinear);
}

bool isLinear(const Node& node) { return node.operation->name == "BasicLinear"; }

/// Reads the two halves of the last axis.
bool isGate(const Graph& graph, const Node& node) {
  return node.operation->isElementwise() && !node.inputs.empty() && node.outputs.size() == 1 &&
         graph.value(node.inputs[0]).spec.cols() == 2 * graph.value(node.outputs[0]).spec.cols();
}

/// A gate whose halves alternate in blocks finds both of them in any slice of whole pairs of blocks.
std::int64_t blockOf(const Node& node) {
  return node.attributes.has("glu_interleave_size") ? node.attributes.integer("glu_interleave_size") : 0;
}

/// Does a collective add up the node's output, perhaps after a bias?
bool isAddedUp(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.uses.size() != 1) return false;
  const Node& reader = graph.node(value.uses.front().node);
  if (reader.operation->name == "ReduceScatter" || reader.operation->name == "AllReduce") return true;
  return keepsSummands(reader) && isAddedUp(graph, reader.outputs.front());
}

RankRole roleOf(const Graph& graph, const Node& node, int ranks) {
  constexpr std::array<std::string_view, 3> kCollectives = {"AllGather", "ReduceScatter", "AllReduce"};
  if (isOneOf(node, kCollectives)) return RankRole::Collective;
  if (!isLinear(node)) return RankRole::Alone;
  const TensorParallelism parallel = tensorParallelism(node.attributes, ranks);
  if (parallel.mode == TensorParallelism::Mode::Column) return RankRole::Column;
  if (parallel.mode == TensorParallelism::Mode::Row) return RankRole::Row;
  return isAddedUp(graph, node.outputs.front()) ? RankRole::RowPart : RankRole::Alone;
}

class PlacementFinder {
 public:
  PlacementFinder(const Graph& graph, int ranks)
      : m_graph(graph),
        m_ranks(ranks),
        m_groups(graph.values().size()),
        m_layouts(graph.values().size()),
        m_kinds(graph.values().size()),
        m_parts(graph.values().size(), 1) {
    for (const Node& node : graph.nodes()) m_placements.roles.push_back(roleOf(graph, node, ranks));
  }

  Result<Placements> find() {
    for (const Node& node : m_graph.nodes()) join(node);
    for (NodeId id = 0; id < toId(m_graph.nodes().size()); ++id) demand(id);
    for (NodeId id = 0; id < toId(m_graph.nodes().size()); ++id) check(id);
    findParts();
    if (m_problem) return *m_problem;
    for (ValueId id = 0; id < toId(m_graph.values().size()); ++id) m_placements.values.push_back(shardOf(id));
    return std::move(m_placements);
  }

 private:
  struct Demand {
    Kind kind;
    NodeId node;
  };

  static int toId(std::size_t index) { return static_cast<int>(index); }
  RankRole role(NodeId id) const { return m_placements.roles[toIndex(id)]; }

  /// The tensors of ops that work alike on any part are of one kind; and of one layout, but for gates.
  void join(const Node& node) {
    if (role(idOf(node)) != RankRole::Alone || node.outputs.empty() || node.inputs.empty()) return;
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const ValueId id : *list) {
        m_groups.join(id, node.inputs[0]);
        if (!isGate(m_graph, node)) m_layouts.join(id, node.inputs[0]);
      }
  }

  NodeId idOf(const Node& node) const { return static_cast<NodeId>(&node - m_graph.nodes().data()); }

  void demand(NodeId id) {
    const Node& node = m_graph.node(id);
    const ValueId x = node.inputs.empty() ? -1 : node.inputs[0];
    const ValueId y = node.outputs.empty() ? -1 : node.outputs[0];
    const bool isSequenceParallel = isLinear(node) && tensorParallelism(node.attributes, m_ranks).isSequenceParallel;
    switch (role(id)) {
      case RankRole::Column:
        set(x, isSequenceParallel ? Kind::Rows : Kind::Whole, id);
        return set(y, Kind::Features, id);
      case RankRole::Row: set(x, Kind::Features, id); return set(y, isSequenceParallel ? Kind::Rows : Kind::Whole, id);
      case RankRole::RowPart: set(x, Kind::Features, id); return set(y, Kind::Summand, id);
      case RankRole::Collective: return demandOfCollective(id);
      case RankRole::Alone:
        if (!worksOnParts(node))
          for (const auto* list : {&node.inputs, &node.outputs})
            for (const ValueId value : *list) set(value, Kind::Whole, id);
    }
  }

  void demandOfCollective(NodeId id) {
    const Node& node = m_graph.node(id);
    const bool isGather = node.operation->name == "AllGather";
    set(node.inputs[0], isGather ? Kind::Rows : Kind::Summand, id);
    set(node.outputs[0], node.operation->name == "ReduceScatter" ? Kind::Rows : Kind::Whole, id);
    if (isGather && m_graph.pass() == ExecutionMode::Training)
      m_placements.notes.push_back(
          fmt::format("{}: every rank holds all rows from here; TransformerEngine's backward sums the gradients of {} "
                      "ranks, so they are {} times those of one rank.",
                      node.id, m_ranks, m_ranks));
  }

  bool worksOnParts(const Node& node) const {
    return isLinear(node) || isNorm(node) || node.operation->isElementwise() || node.operation->isView;
  }

  void set(ValueId value, Kind kind, NodeId node) {
    std::optional<Demand>& known = m_kinds[toIndex(m_groups.of(value))];
    if (!known) known = Demand{kind, node};
    if (known->kind == kind || m_problem) return;
    m_problem = Error{fmt::format("{}: it needs {} to be {}, but {} needs it to be {}. {}", m_graph.node(node).id,
                                  m_graph.value(value).name, nameOf(kind), m_graph.node(known->node).id,
                                  nameOf(known->kind), repairOf(node, known->node, known->kind, kind))};
  }

  std::string repairOf(NodeId a, NodeId b, Kind found, Kind wanted) const {
    for (const NodeId id : {a, b})
      if (role(id) == RankRole::Alone)
        return fmt::format("{} has no tensor-parallel form. Put it where every rank has the whole tensor.",
                           m_graph.node(id).operation->name);
    return std::string(repairOf(found, wanted));
  }

  static std::string_view repairOf(Kind found, Kind wanted) {
    const auto is = [&](Kind a, Kind b) { return (found == a && wanted == b) || (found == b && wanted == a); };
    if (is(Kind::Rows, Kind::Whole))
      return "Set sequence_parallel to the same value on both, or put an AllGather between them.";
    if (is(Kind::Whole, Kind::Features))
      return "Put a column-parallel layer before a row-parallel one, or set its tensor_parallel_mode to column.";
    if (found == Kind::Summand || wanted == Kind::Summand)
      return "Put the AllReduce or ReduceScatter directly after a row-parallel GEMM and its bias.";
    return "Put a row-parallel layer after a column-parallel one.";
  }

  Kind kindOf(ValueId value) {
    const std::optional<Demand>& known = m_kinds[toIndex(m_groups.of(value))];
    return known ? known->kind : Kind::Whole;
  }

  /// Can the op work on the part that its ranks have?
  void check(NodeId id) {
    const Node& node = m_graph.node(id);
    if (role(id) != RankRole::Alone || node.inputs.empty() || m_problem) return;
    const Kind kind = kindOf(node.inputs[0]);
    if (const std::string_view reason = obstacle(node, kind); !reason.empty())
      m_problem = Error{fmt::format("{}: {} cannot work on a tensor that is {}: {}", node.id, node.operation->name,
                                    nameOf(kind), reason)};
  }

  std::string_view obstacle(const Node& node, Kind kind) const {
    if (kind == Kind::Whole) return {};
    if (kind == Kind::Summand)
      return keepsSummands(node) ? ""
                                 : "only a bias is allowed between a row-parallel GEMM and the sum over the ranks.";
    if (kind == Kind::Rows) return obstacleOnRows(node);
    return obstacleOnFeatures(node);
  }

  std::string_view obstacleOnRows(const Node& node) const {
    if (m_graph.value(node.inputs[0]).spec.shape.size() < 2) return "there is one axis only.";
    if (node.operation->name == "Reshape" && frontOf(node.inputs[0]) != frontOf(node.outputs[0]))
      return "it changes the first axis. Move it after the layers with sequence_parallel.";
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      if (node.gradientSink(slot) == GradientSink::Accumulate)
        return "its gradient is a sum over the ranks and cannot be added into main_grad. Set accumulate_into_main_grad "
               "to false.";
    return {};
  }

  std::string_view obstacleOnFeatures(const Node& node) const {
    if (isLinear(node)) return "it multiplies whole rows. Make it row-parallel.";
    if (isNorm(node))
      return std::ranges::count(m_placements.roles, RankRole::Column) > 0
                 ? "it needs whole rows. Put it before the column-parallel layer."
                 : "it needs whole rows. Insert a column-parallel layer after it.";
    if (node.operation->name == "Reshape" && backOf(node.inputs[0]) != backOf(node.outputs[0]))
      return "it changes the last axis. Move it before the column-parallel layer.";
    if (node.operation->name == "Dropout" && node.attributes.real("p") > 0.0)
      return "its mask covers whole rows. Move it after the row-parallel layer.";
    if (!node.parameters.empty() && node.operation->name != "Bias") return "its parameters belong to whole rows.";
    for (const ValueId input : node.inputs)
      if (m_graph.value(input).spec.shape != m_graph.value(node.inputs[0]).spec.shape)
        return "one of its inputs has one value per row, whose gradient is a sum over whole rows.";
    return {};
  }

  std::int64_t frontOf(ValueId id) const {
    const Shape& shape = m_graph.value(id).spec.shape;
    return shape.empty() ? 0 : shape.front();
  }
  std::int64_t backOf(ValueId id) const { return m_graph.value(id).spec.cols(); }

  std::int64_t& partsOf(ValueId id) { return m_parts[toIndex(m_layouts.of(id))]; }

  /// A gate needs the rank's share of both halves, each of which has the parts of its output.
  void findParts() {
    bool isDone = false;
    while (!isDone) {
      isDone = true;
      for (const Node& node : m_graph.nodes()) {
        if (!isGate(m_graph, node) || kindOf(node.inputs[0]) != Kind::Features) continue;
        const std::int64_t wanted = blockOf(node) > 0 ? 1 : 2 * partsOf(node.outputs[0]);
        std::int64_t& parts = partsOf(node.inputs[0]);
        isDone = isDone && parts >= wanted;
        parts = std::max(parts, wanted);
      }
    }
    for (const Node& node : m_graph.nodes()) checkGate(node);
  }

  void checkGate(const Node& node) {
    if (!isGate(m_graph, node) || kindOf(node.inputs[0]) != Kind::Features || m_problem) return;
    const std::int64_t block = blockOf(node);
    const bool fits = block > 0 ? partsOf(node.inputs[0]) == 1 && partsOf(node.outputs[0]) == 1
                                : partsOf(node.inputs[0]) == 2 * partsOf(node.outputs[0]);
    if (!fits)
      m_problem = Error{fmt::format(
          "{}: its input is already split for another gated activation. Give each gated activation its own tensor.",
          node.id)};
    else if (block > 0 && backOf(node.inputs[0]) % (2 * block * m_ranks) != 0)
      m_problem =
          Error{fmt::format("{}: each of {} ranks needs whole pairs of {}-element blocks, but a row has {} elements; "
                            "expected a multiple of {}.",
                            node.id, m_ranks, block, backOf(node.inputs[0]), 2 * block * m_ranks)};
  }

  Shard shardOf(ValueId id) {
    const auto axes = static_cast<int>(m_graph.value(id).spec.shape.size());
    switch (kindOf(id)) {
      case Kind::Whole: return {};
      case Kind::Summand: return {.kind = Shard::Kind::Summand};
      case Kind::Rows: return {.kind = Shard::Kind::Slice, .axis = 0};
      case Kind::Features: return {.kind = Shard::Kind::Slice, .axis = axes - 1, .parts = partsOf(id)};
    }
    return {};
  }

  const Graph& m_graph;
  int m_ranks;
  Groups m_groups;                             // of values of one kind
  Groups m_layouts;                            // of values whose features are shared alike
  std::vector<std::optional<Demand>> m_kinds;  // by group
  std::vector<std::int64_t> m_parts;           // by layout
  Placements m_placements;
  std::optional<Error> m_problem;
};

}  // namespace

Result<Placements> inferPlacements(const Graph& whole, int ranks) { return PlacementFinder(whole, ranks).find(); }

namespace {

/// A slice of the last axis becomes one of this axis.
Shard onAxis(Shard shard, int axis) {
  shard.axis = axis;
  return shard;
}

bool isFeatures(const Graph& whole, ValueId value, const Shard& shard) {
  return shard.isSlice() && shard.axis > 0 && shard.axis + 1 == static_cast<int>(whole.value(value).spec.shape.size());
}

}  // namespace

Shard parameterGradientShard(const Graph& whole, const Placements& placements, NodeId id, int slot) {
  const Shard shard = parameterShard(whole, placements, id, slot);
  return shard.isSlice() ? shard : Shard();
}

Shard parameterShard(const Graph& whole, const Placements& placements, NodeId id, int) {
  const Node& node = whole.node(id);
  const auto shardOf = [&](ValueId value) { return placements.values[toIndex(value)]; };
  switch (placements.roles[toIndex(id)]) {
    case RankRole::Column: return onAxis(shardOf(node.outputs[0]), 0);
    case RankRole::Row:
    case RankRole::RowPart: return onAxis(shardOf(node.inputs[0]), 1);
    default: break;
  }
  if (node.outputs.empty()) return {};
  const Shard y = shardOf(node.outputs[0]);
  if (y.kind == Shard::Kind::Summand) return y;
  return isFeatures(whole, node.outputs[0], y) ? onAxis(y, 0) : Shard();
}

bool hasPartialGradients(const Graph& whole, const Placements& placements, NodeId id) {
  const Node& node = whole.node(id);
  if (node.parameters.empty() || placements.roles[toIndex(id)] != RankRole::Alone) return false;
  const Shard& x = placements.values[toIndex(node.inputs[0])];
  return x.isSlice() && !isFeatures(whole, node.inputs[0], x);
}

}  // namespace fuseline
