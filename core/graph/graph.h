// Graph: an immutable DAG of basic ops in topological order, with a spec on every edge.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/optimizer.h"
#include "core/ops/operation.h"
#include "core/ops/parameters.h"
#include "core/support/result.h"
#include "core/tensor/quantizer_spec.h"
#include "core/tensor/tensor_spec.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Indices into Graph::nodes() and Graph::values(); -1 is "none". Node ids grow along the topological order.
using NodeId = int;
using ValueId = int;

struct Use {
  NodeId node = -1;
  int slot = 0;
};

/// A tensor on an edge: a pipeline input or the output of a node.
struct Value {
  std::string name;  // "x" for an input, "norm.y" for a port
  TensorSpec spec;
  NodeId producer = -1;
  int port = 0;
  std::vector<Use> uses;
  bool isOutput = false;  // read from outside as a pipeline output
  bool needsGradient = false;
};

/// The attribute that makes an instance of a block a nested Sequential.
inline constexpr const char* kSequentialAttribute = "sequential";

/// A nested Sequential of TransformerEngine: an instance of a block that fusions see as one op among others, as no
/// fusion crosses its border.
struct Sequential {
  std::string path;   // "layer1", or "layer1.mlp" inside another instance
  std::string block;  // the block in which the instance is written; empty: the pipeline
  int parent = -1;    // the Sequential around it, an index into Graph::sequentials(); -1: the pipeline
};

struct Node {
  std::string id;       // "fc1", or "fc1.linear" for a part of composite fc1
  std::string owner;    // the op of the pipeline it came from: "fc1", or "layer1" for all ops inside that instance
  std::string path;     // prefix of its parameters' names: "fc1", or "layer1.fc1" inside an instance of a block
  std::string block;    // the block that contains its definition; empty: the pipeline
  int sequential = -1;  // the innermost one that contains it, an index into Graph::sequentials(); -1: the pipeline
  OperationPointer operation;  // for these attributes
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> parameterGradients;
  std::vector<TensorSpec> residuals;
  /// Gradients that backward must produce. All false in a forward-only graph.
  GradientNeeds needs;
  /// Tensors that backward will read; empty if the node takes no part in backward.
  OperationContext context;
  /// Quantizers that a recipe assigns to the operands of a linear op (core/quant/apply_recipe.h).
  LinearQuantizers quantizers;
  /// Parameter gradients are sums over the ranks of a group, of which backward computes this rank's summand.
  bool hasPartialGradients = false;
  /// Its parameters are shards: each rank of a group has another part.
  bool hasShardedParameters = false;
  /// Its parameters belong to another rank, which adds them up: an optimizer leaves these as they are.
  bool hasFrozenParameters = false;

  bool takesPartInBackward() const { return needs.anyInput() || needs.anyParameter(); }
  /// Is this the node, or a part of the op or instance, with this id?
  bool isAt(std::string_view place) const;
  /// "fc1.weight": the name of a parameter in safetensors files.
  std::string parameterName(int slot) const;
  GradientSink gradientSink(int slot) const;
  /// "grad.fc1.weight", or "main_grad.fc1.weight" if the gradient goes to that buffer.
  std::string parameterGradientName(int slot) const;
  /// Which gradients wait for the end of backward, and which do not. All of `needs` is in one of the two.
  GradientNeeds delayedNeeds() const;
  GradientNeeds promptNeeds() const;
  std::string note() const { return operation->noteFor(attributes); }
};

struct GraphOutput {
  std::string name;
  ValueId value = -1;
};

enum class ExecutionMode { Inference, Training };

class Graph {
 public:
  const std::vector<Node>& nodes() const { return m_nodes; }
  const std::vector<Value>& values() const { return m_values; }
  const std::vector<ValueId>& inputs() const { return m_inputs; }
  const std::vector<GraphOutput>& outputs() const { return m_outputs; }
  const std::vector<Sequential>& sequentials() const { return m_sequentials; }
  ExecutionMode pass() const { return m_pass; }
  /// Set if scales follow from the amaxes of earlier steps.
  const std::optional<DelayedScaling>& delayedScaling() const { return m_delayedScaling; }
  /// Set if a training pass ends with an update of the parameters.
  const std::optional<AdamW>& optimizer() const { return m_optimizer; }

  const Node& node(NodeId id) const { return m_nodes[static_cast<std::size_t>(id)]; }
  const Value& value(ValueId id) const { return m_values[static_cast<std::size_t>(id)]; }
  /// -1 when there is none.
  NodeId findNode(std::string_view id) const;
  /// By the value's own name, or by that of a port of an instance which it leaves through: "layer1.y".
  ValueId findValue(std::string_view name) const;
  std::vector<TensorSpec> inputSpecs(NodeId id) const;
  const TensorSpec& spec(NodeId id, OperandKind kind, int slot) const;

  /// The same graph, each node with its quantizers.
  Graph withQuantizers(std::vector<LinearQuantizers> quantizers, std::optional<DelayedScaling> delayedScaling) &&;
  /// The same graph; a forward pass has no optimizer.
  Graph withOptimizer(const std::optional<AdamW>& optimizer) &&;

 private:
  friend class GraphBuilder;
  std::vector<Node> m_nodes;
  std::vector<Value> m_values;
  std::vector<ValueId> m_inputs;
  std::vector<GraphOutput> m_outputs;
  std::vector<Sequential> m_sequentials;
  std::map<std::string, ValueId, std::less<>> m_aliases;
  ExecutionMode m_pass = ExecutionMode::Inference;
  std::optional<DelayedScaling> m_delayedScaling;
  std::optional<AdamW> m_optimizer;
};

/// Builds a graph in topological order, and infers specs on the way.
class GraphBuilder {
 public:
  /// Reserves memory for about this number of nodes, which are then not moved when others are added.
  void reserve(std::size_t numNodes);
  /// An integer input never has a gradient.
  ValueId addInput(std::string name, TensorSpec spec, bool requiresGradient = true);
  /// Adds a node of an op that already matches these attributes.
  /// Errors: those of the op's infer. Nothing is added then.
  Result<NodeId> addNode(std::string id, std::string owner, OperationPointer operation, Attributes attributes,
                         std::vector<ValueId> inputs);
  /// Specializes the op, which must outlive the graph if it is the same for all attributes.
  Result<NodeId> addNode(std::string id, std::string owner, const FusibleOperation& operation, Attributes attributes,
                         std::vector<ValueId> inputs);
  /// The path of a node is its owner, and its block none, unless set.
  void setOrigin(NodeId node, std::string path, std::string block);
  /// The same place as a node of another graph, whose Sequentials this one has, too.
  void copyPlace(NodeId node, const Node& from);
  void copySequentials(const Graph& from) { m_graph.m_sequentials = from.m_sequentials; }
  void markPartialGradients(NodeId node);
  void markShardedParameters(NodeId node);
  void markFrozenParameters(NodeId node);
  /// Nodes that are added from now on are in a new Sequential inside the current one, until it is left.
  void enterSequential(std::string path, std::string block);
  void leaveSequential();
  /// Another name under which findValue() finds a value.
  void addAlias(std::string name, ValueId value);
  void addOutput(std::string name, ValueId value);
  const Graph& partial() const { return m_graph; }

  /// Training: decides which gradients are needed and runs every op's saveContext, once.
  Graph finish(ExecutionMode pass) &&;

 private:
  Graph m_graph;
  int m_sequential = -1;
  std::vector<bool> m_requiresGradient;  // by position in m_graph.inputs()
};

/// One line per op: "norm = RMSNorm(x) -> y [512, 1024] bf16".
std::string toString(const Graph& graph);

}  // namespace fuseline
