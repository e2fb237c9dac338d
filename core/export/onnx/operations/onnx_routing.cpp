// The choice is made by TopK, whose ties go to the lower index, too; places of rows are sums over one-hot rows.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/operations/onnx_routing.h"

#include "core/ops/moe_form.h"
#include "core/ops/moe_loss_form.h"

#include <limits>
#include <vector>

namespace fuseline {

namespace {

using Ints = std::vector<std::int64_t>;

OnnxValue reduced(OnnxGraph& graph, const OnnxValue& value, const Ints& axes, const char* part, bool keepsAxes) {
  return graph.add("ReduceSum", {value, graph.integers(axes)}, part, {{"keepdims", std::int64_t{keepsAxes ? 1 : 0}}});
}

struct Largest {
  OnnxValue values;
  OnnxValue indices;  // i64
};

/// By falling value along the last axis.
Largest largest(OnnxGraph& graph, const OnnxValue& value, std::int64_t count, const char* part) {
  std::vector<OnnxValue> both =
      graph.addSeveral("TopK", {value, graph.integers({count})}, 2, part, {{"axis", std::int64_t{-1}}});
  return {both[0], {both[1].name, DType::I64}};
}

/// 1 at each index in a new last axis, else 0. indices: i64, none below 0.
OnnxValue oneHot(OnnxGraph& graph, const OnnxValue& indices, std::int64_t depth) {
  return graph.add("OneHot", {indices, graph.integer(depth), graph.integers({0, 1})}, "one_hot");
}

OnnxValue softmax(OnnxGraph& graph, const OnnxValue& value, const char* part) {
  return graph.add("Softmax", {value}, part, {{"axis", std::int64_t{-1}}});
}

OnnxValue scoresOf(OnnxGraph& graph, RouterScore score, const OnnxValue& logits) {
  if (score == RouterScore::Sigmoid) return graph.add("Sigmoid", {logits}, "scores");
  if (score == RouterScore::Softmax) return softmax(graph, logits, "scores");
  return graph.add("Sqrt", {graph.add("Softplus", {logits}, "softplus")}, "scores");
}

/// Divided by their sum along the last axis.
OnnxValue normalized(OnnxGraph& graph, const OnnxValue& value, const char* part) {
  const OnnxValue sum = reduced(graph, value, {-1}, "sum", true);
  return graph.add("Div", {value, graph.add("Add", {sum, graph.number(kRouterEpsilon)}, "divisor")}, part);
}

/// value: what `condition` selects. Where takes the dtype of its second input.
OnnxValue where(OnnxGraph& graph, const OnnxValue& condition, const OnnxValue& value, const OnnxValue& other,
                const char* part) {
  return {graph.add("Where", {condition, value, other}, part).name, value.dtype};
}

OnnxValue isDropped(OnnxGraph& graph, const OnnxValue& indices) {
  return graph.add("Less", {indices, graph.integer(0)}, "is_dropped");
}

// ---- the router

class RouterNodes {
 public:
  explicit RouterNodes(OnnxGraph& graph)
      : m_graph(graph), m_form(routerForm(graph.operation().attributes)), m_numExperts(graph.inputSpec().cols()) {}

  void add() {
    const OnnxValue logits = m_graph.cast(m_graph.input(), DType::F32);
    const OnnxValue scores = scoresOf(m_graph, m_form.score, logits);
    const bool decide = m_form.score != RouterScore::Softmax || (m_form.usesPreSoftmax && m_form.numGroups > 0);
    OnnxValue choice = decide ? scores : logits;
    if (m_form.hasExpertBias) choice = m_graph.add("Add", {choice, m_graph.parameter()}, "biased");
    if (m_form.numGroups > 0) choice = inBestGroups(choice);
    const OnnxValue indices = largest(m_graph, choice, m_form.topk, "chosen").indices;
    const OnnxValue probs = probsOf(m_form.isSoftmaxOfChosen() ? logits : scores, indices);
    Ints tokenAxes;
    for (std::size_t axis = 0; axis < m_graph.inputSpec().shape.size(); ++axis)
      tokenAxes.push_back(static_cast<std::int64_t>(axis));
    const OnnxValue counts = reduced(m_graph, oneHot(m_graph, indices, m_numExperts), tokenAxes, "counts", false);
    m_graph.setOutput(RouterForm::kTokensPerExpert, counts);
    m_graph.setOutput(0, probs);
    m_graph.setOutput(RouterForm::kIndices, indices);
  }

 private:
  /// With -inf for the experts of other groups.
  OnnxValue inBestGroups(const OnnxValue& choice) {
    Ints apart(m_graph.inputSpec().shape.size() - 1, 0), together = apart;
    apart.insert(apart.end(), {m_form.numGroups, m_numExperts / m_form.numGroups});
    together.push_back(m_numExperts);
    const OnnxValue groups = m_graph.add("Reshape", {choice, m_graph.integers(apart)}, "groups");
    const OnnxValue best = largest(m_graph, groups, m_form.topk / m_form.groupTopk, "best").values;
    const OnnxValue sums = reduced(m_graph, best, {-1}, "group_scores", false);
    const OnnxValue open = largest(m_graph, sums, m_form.groupTopk, "best_groups").indices;
    const OnnxValue isOpen = reduced(m_graph, oneHot(m_graph, open, m_form.numGroups), {-2}, "is_open", false);
    const OnnxValue column = m_graph.add("Unsqueeze", {isOpen, m_graph.integers({-1})}, "column");
    const OnnxValue condition = m_graph.add("Greater", {column, m_graph.integer(0)}, "condition");
    const OnnxValue masked =
        where(m_graph, condition, groups, m_graph.number(-std::numeric_limits<double>::infinity()), "masked");
    return m_graph.add("Reshape", {masked, m_graph.integers(together)}, "choice");
  }

  OnnxValue probsOf(const OnnxValue& from, const OnnxValue& indices) {
    // ONNX's reference evaluator misreads a negative axis here.
    const auto lastAxis = static_cast<std::int64_t>(m_graph.inputSpec().shape.size()) - 1;
    OnnxValue probs = m_graph.add("GatherElements", {from, indices}, "of_chosen", {{"axis", lastAxis}});
    if (m_form.isSoftmaxOfChosen())
      probs = softmax(m_graph, probs, "probs");
    else if (m_form.normalizes)
      probs = normalized(m_graph, probs, "probs");
    if (m_form.scalingFactor == 1.0) return probs;
    return m_graph.add("Mul", {probs, m_graph.number(m_form.scalingFactor)}, "scaled");
  }

  OnnxGraph& m_graph;
  RouterForm m_form;
  std::int64_t m_numExperts;
};

// ---- the auxiliary losses

/// The losses of all layers together: of their tokens for each expert, and of the scores of all their tokens.
class AuxLossNodes {
 public:
  explicit AuxLossNodes(OnnxGraph& graph)
      : m_graph(graph), m_form(auxLossForm(graph.operation().attributes)), m_numExperts(graph.inputSpec().cols()) {}

  void add() {
    OnnxValue counts, scores, squares;
    for (int layer = 0; layer < m_form.layers; ++layer) {
      const OnnxValue logits = logitsOf(layer);
      sumUp(counts, m_graph.cast(m_graph.input(m_form.countsSlot(layer)), DType::F32), "counts");
      sumUp(scores, reduced(m_graph, scoresOfTokens(logits), {0}, "of_tokens", false), "all_scores");
      if (m_form.zLossCoeff > 0.0) sumUp(squares, squaresOf(logits), "all_squares");
      m_numTokens += m_graph.inputSpec(m_form.logitsSlot(layer)).rows();
    }
    const OnnxValue load = m_graph.add("Mul", {counts, scores}, "load");
    OnnxValue loss = scaled(reduced(m_graph, load, {0}, "load_sum", false),
                            m_form.loadFactor(m_numExperts, m_numTokens), "load_loss");
    if (m_form.zLossCoeff > 0.0)
      loss = m_graph.add("Add", {loss, scaled(squares, m_form.zFactor(m_numTokens), "z_loss")}, "loss");
    m_graph.setOutput(0, loss);
  }

 private:
  OnnxValue logitsOf(int layer) {
    const OnnxValue x = m_graph.cast(m_graph.input(m_form.logitsSlot(layer)), DType::F32);
    return m_graph.add("Reshape", {x, m_graph.integers({-1, m_numExperts})}, "logits");
  }

  OnnxValue scoresOfTokens(const OnnxValue& logits) {
    const OnnxValue scores = scoresOf(m_graph, m_form.score, logits);
    return m_form.score == RouterScore::Softmax ? scores : normalized(m_graph, scores, "shares");
  }

  OnnxValue squaresOf(const OnnxValue& logits) {
    const OnnxValue lse = m_graph.add("ReduceLogSumExp", {logits, m_graph.integers({-1})}, "lse");
    return reduced(m_graph, m_graph.add("Mul", {lse, lse}, "squares"), {0, 1}, "squares_sum", false);
  }

  void sumUp(OnnxValue& sum, const OnnxValue& value, const char* part) {
    sum = sum.name.empty() ? value : m_graph.add("Add", {sum, value}, part);
  }

  OnnxValue scaled(const OnnxValue& value, double factor, const char* part) {
    return m_graph.add("Mul", {value, m_graph.number(factor)}, part);
  }

  OnnxGraph& m_graph;
  AuxLossForm m_form;
  std::int64_t m_numExperts;
  std::int64_t m_numTokens = 0;  // of all layers
};

// ---- permutation

/// Dropped slots are those of one more expert, whose rows follow all others and are cut off.
class PermuteNodes {
 public:
  explicit PermuteNodes(OnnxGraph& graph)
      : m_graph(graph),
        m_form(permuteForm(graph.operation().attributes)),
        m_numRows(graph.outputSpec().rows()),
        m_numSlots(graph.inputSpec(PermuteForm::kIndices).numElements()) {}

  void add() {
    const OnnxValue given =
        m_graph.add("Reshape", {m_graph.input(PermuteForm::kIndices), m_graph.integers({-1})}, "slots");
    const OnnxValue dropped = isDropped(m_graph, given);
    const OnnxValue expert = where(m_graph, dropped, m_graph.integer(m_form.numExperts), given, "expert");
    const OnnxValue hot = oneHot(m_graph, expert, m_form.numExperts + 1);
    const OnnxValue sizes = paddedSizes(hot);
    const OnnxValue rows = rowsOf(expert, hot, sizes);
    const OnnxValue map = where(m_graph, dropped, m_graph.integer(-1), rows, "rows_or_none");
    const OnnxValue shaped =
        m_graph.add("Reshape", {map, m_graph.integers(m_graph.inputSpec(PermuteForm::kIndices).shape)}, "map");
    const OnnxValue y = permuted(where(m_graph, dropped, m_graph.integer(m_numRows), rows, "target"));
    const OnnxValue all = allRows(sizes);
    m_graph.setOutput(PermuteForm::kSplitSizes, all);
    m_graph.setOutput(0, y);
    m_graph.setOutput(PermuteForm::kRowIdMap, shaped);
  }

 private:
  /// [E], rounded up.
  OnnxValue paddedSizes(const OnnxValue& hot) {
    const OnnxValue counts = reduced(m_graph, hot, {0}, "counts", false);
    const OnnxValue ofExperts =
        m_graph.add("Slice", {counts, m_graph.integers({0}), m_graph.integers({m_form.numExperts})}, "of_experts");
    if (m_form.alignSize == 1) return ofExperts;
    const OnnxValue unit = m_graph.integer(m_form.alignSize);
    const OnnxValue more = m_graph.add("Add", {ofExperts, m_graph.integer(m_form.alignSize - 1)}, "more");
    return m_graph.add("Mul", {m_graph.add("Div", {more, unit}, "units"), unit}, "padded");
  }

  /// Those before the expert, and those of the expert's slots before.
  OnnxValue rowsOf(const OnnxValue& expert, const OnnxValue& hot, const OnnxValue& sizes) {
    const OnnxAttributes isExclusive = {{"exclusive", std::int64_t{1}}};
    const OnnxValue before = m_graph.add("CumSum", {hot, m_graph.integer(0)}, "before", isExclusive);
    const OnnxValue rank = reduced(m_graph, m_graph.add("Mul", {before, hot}, "own"), {1}, "rank", false);
    const OnnxValue first = m_graph.add("CumSum", {sizes, m_graph.integer(0)}, "first", isExclusive);
    const OnnxValue firsts =
        m_graph.add("Concat", {first, m_graph.integers({m_numRows})}, "firsts", {{"axis", std::int64_t{0}}});
    return m_graph.add("Add", {m_graph.add("Gather", {firsts, expert}, "begin"), rank}, "rows");
  }

  /// A row for each slot, at its target.
  OnnxValue permuted(const OnnxValue& target) {
    const std::int64_t H = m_graph.inputSpec().cols();
    const std::int64_t topk = m_graph.inputSpec(PermuteForm::kIndices).cols();
    const OnnxValue x = m_graph.add("Reshape", {m_graph.input(), m_graph.integers({-1, 1, H})}, "tokens");
    const OnnxValue several = m_graph.add("Expand", {x, m_graph.integers({1, topk, 1})}, "several");
    const OnnxValue copies = m_graph.add("Reshape", {several, m_graph.integers({m_numSlots, H})}, "copies");
    const OnnxValue zero = m_graph.cast(m_graph.number(0.0), copies.dtype);
    const OnnxValue zeros = m_graph.add("Expand", {zero, m_graph.integers({m_numRows + 1, H})}, "zeros");
    const OnnxValue column = m_graph.add("Unsqueeze", {target, m_graph.integers({-1})}, "column");
    const OnnxValue placed = m_graph.add("ScatterND", {zeros, column, copies}, "placed");
    return m_graph.add("Slice", {placed, m_graph.integers({0}), m_graph.integers({m_numRows})}, "kept");
  }

  /// The last expert has the rows that are left over.
  OnnxValue allRows(const OnnxValue& sizes) {
    Ints last(static_cast<std::size_t>(m_form.numExperts), 0);
    last.back() = 1;
    const OnnxValue total = reduced(m_graph, sizes, {0}, "total", false);
    const OnnxValue rest = m_graph.add("Sub", {m_graph.integer(m_numRows), total}, "rest");
    return m_graph.add("Add", {sizes, m_graph.add("Mul", {m_graph.integers(last), rest}, "of_last")}, "split_sizes");
  }

  OnnxGraph& m_graph;
  PermuteForm m_form;
  std::int64_t m_numRows, m_numSlots;
};

}  // namespace

void addOnnxRouter(OnnxGraph& graph) { RouterNodes(graph).add(); }

void addOnnxAuxLoss(OnnxGraph& graph) { AuxLossNodes(graph).add(); }

void addOnnxPermute(OnnxGraph& graph) { PermuteNodes(graph).add(); }

void addOnnxUnpermute(OnnxGraph& graph) {
  const OnnxValue map = graph.input(1);
  const OnnxValue x = graph.add(
      "Reshape", {graph.cast(graph.input(), DType::F32), graph.integers({-1, graph.inputSpec().cols()})}, "matrix");
  const OnnxValue rows =
      graph.add("Gather", {x, graph.add("Max", {map, graph.integer(0)}, "row")}, "rows", {{"axis", std::int64_t{0}}});
  const OnnxValue dropped = graph.add("Unsqueeze", {isDropped(graph, map), graph.integers({-1})}, "dropped");
  OnnxValue kept = where(graph, dropped, graph.number(0.0), rows, "kept");
  if (graph.operation().attributes.boolean("merging_probs")) {
    const OnnxValue probs = graph.cast(graph.input(2), DType::F32);
    kept = graph.add("Mul", {kept, graph.add("Unsqueeze", {probs, graph.integers({-1})}, "weights")}, "weighted");
  }
  graph.setOutput(0, reduced(graph, kept, {-2}, "sum", false));
}

}  // namespace fuseline
