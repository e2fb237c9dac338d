// Which ops in place TransformerEngine must not run so, against a model of how it hands tensors and gradients on.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/in_place_hazards.h"

#include "tests/support/pipelines.h"
#include "tests/support/random_pipelines.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::chain;
using testing::inPlace;
using testing::linear;
using testing::link;
using testing::reading;
using testing::with;

std::vector<std::string> hazards(const Graph& graph) {
  std::vector<std::string> reasons;
  for (const InPlaceHazard& hazard : inPlaceHazards(graph)) reasons.push_back(hazard.reason);
  return reasons;
}

using Reasons = std::vector<std::string>;

std::vector<testing::Link> residual(const char* first) {
  return {link("MakeExtraOutput", "save"), link(first, "first"), linear(16, "fc"),
          inPlace(link("AddExtraInput", "add", "save.extra"))};
}

TEST(InPlaceHazards, NameTheOpThatKeepsTheTensorForBackward) {
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, residual("RMSNorm"))),
            Reasons{"first keeps that tensor, save.y, for backward"});
}

TEST(InPlaceHazards, AreNoneWhereNobodyReadsTheTensorAnyMore) {
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, residual("RMSNorm"), {.pass = ExecutionMode::Inference})), Reasons{});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, {linear(16, "fc"), inPlace(link("AddExtraInput", "add"))})),
            Reasons{});
}

// The two branches become modules of their own, which may run in any order.
TEST(InPlaceHazards, AnOpOfAnotherBranchMayRunLater) {
  const Graph graph = chain(DType::BF16, {32, 16},
                            {link("GELU", "g"), link("Bias", "branch"), reading("x", link("GELU", "h")),
                             inPlace(link("AddExtraInput", "add", "g.y"))},
                            {.pass = ExecutionMode::Inference, .extraOutputs = {"branch.y"}});
  EXPECT_EQ(hazards(graph), Reasons{"branch still needs that tensor, g.y"});
}

TEST(InPlaceHazards, AModuleDoesNotOverwriteTheViewOfAnother) {
  const std::vector<testing::Link> links = {link("GELU", "g"), link("Identity", "same"),
                                            reading("x", link("GELU", "h")),
                                            inPlace(link("AddExtraInput", "add", "same.y"))};
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links)),
            Reasons{"autograd raises where another te.ops.Sequential overwrites the view that same returns"});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links, {.pass = ExecutionMode::Inference})), Reasons{});
}

// A linear layer keeps its input quantized under a recipe, and the plain input without one.
TEST(InPlaceHazards, AreNoneWhereCodesAreKept) {
  const std::vector<testing::Link> links = {link("MakeExtraOutput", "save"), linear(16, "fc"),
                                            inPlace(link("AddExtraInput", "add", "save.extra"))};
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links)), Reasons{"fc keeps that tensor, save.y, for backward"});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links, {.recipe = "DelayedScaling"})), Reasons{});
}

TEST(InPlaceHazards, FollowTheTensorThroughOpsThatHandItOn) {
  std::vector<testing::Link> links = residual("Identity");
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links)), Reasons{"fc keeps that tensor, first.y, for backward"});
  links.insert(links.begin() + 2, link("GELU", "act"));
  EXPECT_EQ(
      hazards(chain(DType::BF16, {32, 16}, links, {.pass = ExecutionMode::Inference, .extraOutputs = {"first.y"}})),
      Reasons{"that tensor, first.y, is an output"});
  links.push_back(link("AddExtraInput", "later", "first.y"));
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links, {.pass = ExecutionMode::Inference})),
            Reasons{"later still needs that tensor, first.y"});
}

// In inference x is not kept, but the GEMM that adds to it also reads it.
TEST(InPlaceHazards, AGemmDoesNotAddToItsInput) {
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, residual("Identity"), {.pass = ExecutionMode::Inference})),
            Reasons{"fc consumes that tensor, first.y, while its GEMM adds to it"});
}

/// save, in place, with `between` on the main wire; the addend continues through a norm, which has a new gradient.
std::vector<testing::Link> savedInPlace(std::vector<testing::Link> between) {
  std::vector<testing::Link> links = {inPlace(link("MakeExtraOutput", "save"))};
  for (testing::Link& item : between) links.push_back(std::move(item));
  links.push_back(link("AddExtraInput", "add", "save.extra"));
  links.push_back(link("RMSNorm", "norm"));
  return links;
}

// x + W x: AddExtraInput hands both of its inputs one gradient.
TEST(InPlaceHazards, AGemmDoesNotAddToTheGradientThatItReads) {
  const std::vector<testing::Link> direct = savedInPlace({linear(16, "fc")});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, direct)),
            Reasons{"fc consumes that tensor, as the gradient of fc.y, while its GEMM adds to it"});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, direct, {.recipe = "DelayedScaling"})), Reasons{})
      << "the GEMM reads codes";
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, savedInPlace({linear(16, "fc"), link("GELU", "act")}))), Reasons{});
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, direct, {.pass = ExecutionMode::Inference})), Reasons{});
}

TEST(InPlaceHazards, ViewsOfATensorAreNotOverwritten) {
  const testing::Link split = with(link("Split", "split"), "sizes", std::vector<std::int64_t>{8, 8});
  const std::vector<testing::Link> links = {split, link("GELU", "act"),
                                            inPlace(link("AddExtraInput", "add", "split.y1"))};
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links, {.pass = ExecutionMode::Inference})),
            Reasons{"split returns views of that tensor, x"});
}

TEST(InPlaceHazards, ViewsOfAGradientAreNotAddedTo) {
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16},
                          {inPlace(link("MakeExtraOutput", "save")), link("GELU", "act"),
                           link("Concat", "cat", "save.extra"), linear(16, "fc")})),
            Reasons{"cat returns views of that tensor, the gradient of cat.y"});
}

TEST(InPlaceHazards, AGradientThatSomebodyElseIsGivenIsNotAddedTo) {
  const std::vector<testing::Link> twoInputs =
      savedInPlace({linear(16, "fc"), link("GELU", "act"), link("AddExtraInput", "e")});
  const std::vector<std::string> found = hazards(chain(DType::BF16, {32, 16}, twoInputs));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("that tensor is the gradient of input ")) << found[0];
  std::vector<testing::Link> last = savedInPlace({link("GELU", "act")});
  last.pop_back();
  EXPECT_TRUE(hazards(chain(DType::BF16, {32, 16}, last))[0].find("that tensor is the caller's gradient of output ") !=
              std::string::npos);
}

TEST(InPlaceHazards, AGradientThatIsStillReadIsNotAddedTo) {
  const std::vector<testing::Link> links = {link("MakeExtraOutput", "first"),
                                            inPlace(link("MakeExtraOutput", "save")),
                                            link("GELU", "act"),
                                            link("AddExtraInput", "add", "save.extra"),
                                            link("AddExtraInput", "add2", "first.extra"),
                                            link("RMSNorm", "norm")};
  EXPECT_EQ(hazards(chain(DType::BF16, {32, 16}, links)),
            Reasons{"first still needs that tensor, as the gradient of first.extra"});
}

// ---- a model of TransformerEngine with one number a tensor

using Tensor = std::shared_ptr<double>;

Tensor made(double value) { return std::make_shared<double>(value); }

/// Everything that a user or backward sees, as it is at the end.
using Results = std::vector<double>;

class Model {
 public:
  Model(const Graph& graph, std::set<NodeId> inPlace) : m_graph(graph), m_inPlace(std::move(inPlace)) {}

  /// Outputs, and tensors kept for backward.
  Results forward() {
    m_values.assign(m_graph.values().size(), nullptr);
    for (const ValueId input : m_graph.inputs()) m_values[at(input)] = made(1.0 + input);
    for (NodeId id = 0; id < numNodes(); ++id) runForward(id);
    return resultsOf(m_values, m_seen);
  }

  /// Gradients of inputs and parameters, and those that the caller gave.
  Results backward() {
    m_seen.clear();
    m_parts.assign(m_graph.values().size(), {});
    for (std::size_t i = 0; i < m_graph.outputs().size(); ++i) {
      m_seen.push_back(made(0.5 + 0.25 * static_cast<double>(i)));
      m_parts[at(m_graph.outputs()[i].value)].push_back(m_seen.back());
    }
    for (NodeId id = numNodes() - 1; id >= 0; --id)
      if (!isFusedWithSave(id)) runBackward(id);
    for (const ValueId input : m_graph.inputs())
      if (const Tensor gradient = gradientOf(input); gradient && m_graph.value(input).needsGradient)
        m_seen.push_back(gradient);
    Results results;
    for (const Tensor& tensor : m_seen) results.push_back(*tensor);
    return results;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  NodeId numNodes() const { return static_cast<NodeId>(m_graph.nodes().size()); }
  const std::string& kind(NodeId id) const { return m_graph.node(id).operation->name; }
  bool isInPlace(NodeId id) const { return m_inPlace.contains(id); }
  double factor(NodeId id) const { return 0.75 + 0.03125 * id; }
  bool handsOn(NodeId id) const { return kind(id) == "Identity" || kind(id) == "Dropout" || kind(id) == "Reshape"; }

  Results resultsOf(const std::vector<Tensor>& values, const std::vector<Tensor>& kept) const {
    Results results;
    for (const GraphOutput& output : m_graph.outputs()) results.push_back(*values[at(output.value)]);
    for (const Tensor& tensor : kept) results.push_back(*tensor);
    return results;
  }

  // ---- forward

  void runForward(NodeId id) {
    const Node& node = m_graph.node(id);
    const Tensor x = m_values[at(node.inputs[0])];
    if (kind(id) == "MakeExtraOutput")
      m_values[at(node.outputs[0])] = m_values[at(node.outputs[1])] = x;
    else if (kind(id) == "AddExtraInput")
      m_values[at(node.outputs[0])] = added(id, x, m_values[at(node.inputs[1])]);
    else if (handsOn(id))
      m_values[at(node.outputs[0])] = x;
    else
      m_values[at(node.outputs[0])] = made(factor(id) * *x);
    keep(node);
  }

  void keep(const Node& node) {
    for (const SavedTensor& saved : node.context.tensors) {
      if (saved.kind == OperandKind::Input) m_seen.push_back(m_values[at(node.inputs[at(saved.slot)])]);
      if (saved.kind == OperandKind::Output) m_seen.push_back(m_values[at(node.outputs[at(saved.slot)])]);
    }
  }

  /// With a linear op in front a GEMM adds, in two tiles, each of which reads its input as it then is.
  Tensor added(NodeId add, const Tensor& x, const Tensor& extra) {
    if (!isInPlace(add)) return made(*x + *extra);
    const NodeId linear = m_graph.value(m_graph.node(add).inputs[0]).producer;
    const bool isGemm = linear >= 0 && kind(linear) == "BasicLinear";
    if (!isGemm) {
      *extra += *x;
      return extra;
    }
    const Tensor read = m_values[at(m_graph.node(linear).inputs[0])];
    for (int tile = 0; tile < 2; ++tile) *extra += 0.5 * factor(linear) * *read;
    return extra;
  }

  // ---- backward

  /// One gradient is itself; several are summed up into a new one.
  Tensor gradientOf(ValueId value) const {
    const std::vector<Tensor>& parts = m_parts[at(value)];
    if (parts.size() <= 1) return parts.empty() ? nullptr : parts[0];
    double sum = 0.0;
    for (const Tensor& part : parts) sum += *part;
    return made(sum);
  }

  void give(ValueId value, Tensor gradient) {
    if (gradient) m_parts[at(value)].push_back(std::move(gradient));
  }

  bool isFusedWithSave(NodeId id) const {
    const NodeId save = m_graph.value(m_graph.node(id).inputs[0]).producer;
    return kind(id) == "BasicLinear" && save >= 0 && fusedLinear(save) == id;
  }

  /// The linear op of BackwardLinearAdd; -1: there is none.
  NodeId fusedLinear(NodeId save) const {
    const Node& node = m_graph.node(save);
    if (kind(save) != "MakeExtraOutput" || !isInPlace(save)) return -1;
    const Value& y = m_graph.value(node.outputs[0]);
    const bool isChain =
        y.uses.size() == 1 && !y.isOutput && y.uses[0].slot == 0 && kind(y.uses[0].node) == "BasicLinear";
    return isChain ? y.uses[0].node : -1;
  }

  void runBackward(NodeId id) {
    const Node& node = m_graph.node(id);
    if (kind(id) == "MakeExtraOutput") return runBackwardOfSave(id);
    const Tensor dy = gradientOf(node.outputs[0]);
    if (!dy) return;
    if (kind(id) == "AddExtraInput") {
      for (const ValueId input : node.inputs) give(input, dy);
    } else if (handsOn(id)) {
      give(node.inputs[0], dy);
    } else {
      m_seen.push_back(made(*dy));  // the gradient of a parameter
      for (const ValueId input : node.inputs) give(input, kind(id) == "Bias" ? dy : made(factor(id) * *dy));
    }
  }

  void runBackwardOfSave(NodeId id) {
    const Node& node = m_graph.node(id);
    const Tensor extra = gradientOf(node.outputs[1]);
    const NodeId linear = fusedLinear(id);
    if (linear >= 0) return runFused(node, linear, extra);
    const Tensor dy = gradientOf(node.outputs[0]);
    if (!extra || !dy) return give(node.inputs[0], extra ? extra : dy);
    if (!isInPlace(id)) return give(node.inputs[0], made(*extra + *dy));
    *extra += *dy;
    give(node.inputs[0], extra);
  }

  /// The gradient of the weight follows that of the input, and both read dy.
  void runFused(const Node& save, NodeId linear, const Tensor& extra) {
    const Tensor dy = gradientOf(m_graph.node(linear).outputs[0]);
    if (!dy) return give(save.inputs[0], extra);
    const Tensor dx = extra ? extra : made(0.0);
    for (int tile = 0; tile < 2; ++tile) *dx += 0.5 * factor(linear) * *dy;
    m_seen.push_back(made(*dy));
    give(save.inputs[0], dx);
  }

  const Graph& m_graph;
  std::set<NodeId> m_inPlace;
  std::vector<Tensor> m_values;
  std::vector<std::vector<Tensor>> m_parts;
  std::vector<Tensor> m_seen;  // tensors that are read at the end
};

std::set<NodeId> inPlaceNodes(const Graph& graph) {
  std::set<NodeId> nodes;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.attributes.has("in_place") && node.attributes.boolean("in_place")) nodes.insert(id);
  }
  return nodes;
}

std::set<NodeId> safeNodes(const Graph& graph) {
  std::set<NodeId> nodes = inPlaceNodes(graph);
  for (const InPlaceHazard& hazard : inPlaceHazards(graph)) nodes.erase(hazard.node);
  return nodes;
}

bool isNear(Results found, Results expected) {
  std::ranges::sort(found);  // fused ops come at another time
  std::ranges::sort(expected);
  return std::ranges::equal(found, expected, [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); });
}

Results backwardOf(const Graph& graph, std::set<NodeId> inPlace) { return Model(graph, std::move(inPlace)).backward(); }

// Proves the model: it shows the fault that the analysis is there to find.
TEST(InPlaceHazards, TheModelOfTransformerEngineShowsThem) {
  const Graph graph = chain(DType::BF16, {32, 16}, savedInPlace({linear(16, "fc")}));
  EXPECT_FALSE(isNear(backwardOf(graph, inPlaceNodes(graph)), backwardOf(graph, {})));
  EXPECT_TRUE(isNear(backwardOf(graph, safeNodes(graph)), backwardOf(graph, {})));
}

RC_GTEST_PROP(InPlaceHazards, WithoutThemResultsAndGradientsAreThoseOfOpsThatAreNotInPlace, ()) {
  const testing::RandomPipeline pipeline = testing::randomPipeline();
  const Graph graph = chain(DType::BF16, {32, 16}, pipeline.links, pipeline.options);
  const std::set<NodeId> safe = safeNodes(graph);
  RC_CLASSIFY(!safe.empty(), "something is in place");
  RC_CLASSIFY(safe.size() < inPlaceNodes(graph).size(), "there is a hazard");
  RC_ASSERT(isNear(Model(graph, safe).forward(), Model(graph, {}).forward()));
  RC_ASSERT(isNear(backwardOf(graph, safe), backwardOf(graph, {})));
}

}  // namespace
}  // namespace fuseline
