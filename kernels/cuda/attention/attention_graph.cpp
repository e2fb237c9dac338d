// The operations of attention in the order and with the shapes by which cuDNN knows them.
// SPDX-License-Identifier: Apache-2.0
// cuDNN recognizes attention by its pattern (NVIDIA's cudnn-frontend 1.23 describes it): keys come transposed, masks
// select minus infinity by comparing indices of rows and columns, and backward keeps two float32 tensors in memory.
#include "kernels/cuda/attention/attention_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fuseline::cuda {

GraphElement graphElement(DType dtype) {
  if (dtype == DType::F16) return GraphElement::F16;
  return dtype == DType::BF16 ? GraphElement::BF16 : GraphElement::F32;
}

namespace {

enum class Tokens : std::uint8_t { Queries, Keys };

/// Rows and columns are swapped, in memory nothing is.
GraphTensor transposed(GraphTensor tensor) {
  std::swap(tensor.dims[2], tensor.dims[3]);
  std::swap(tensor.strides[2], tensor.strides[3]);
  return tensor;
}

GraphTensor packed(const GraphExtents& dims, GraphElement element) {
  return {.dims = dims, .strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}, .element = element};
}

/// Tensors of a graph of attention.
class GraphTensors {
 public:
  /// element: of q, k and v
  GraphTensors(const AttentionProblem& problem, GraphElement element) : m_problem(problem), m_element(element) {}

  int add(GraphTensor tensor) {
    m_graph.tensors.push_back(std::move(tensor));
    return static_cast<int>(m_graph.tensors.size()) - 1;
  }
  int scalar(float value) { return add({.element = GraphElement::F32, .scalar = value}); }
  int scalar(std::int64_t value) {
    return add({.element = GraphElement::I32, .scalar = static_cast<std::int32_t>(value)});
  }
  int queryHeads(const TokenLayout& layout) { return queryHeads(layout, m_element); }
  int queryHeads(const TokenLayout& layout, GraphElement element) {
    return add(headTensor(Tokens::Queries, layout, element));
  }
  int keyHeads(const TokenLayout& layout) { return add(headTensor(Tokens::Keys, layout, m_element)); }
  int keyHeadsTransposed(const TokenLayout& layout) {
    return add(transposed(headTensor(Tokens::Keys, layout, m_element)));
  }
  /// One number in memory.
  int number() { return add({.element = GraphElement::F32}); }
  /// [entries, heads, queries, columns], virtual
  int rows(std::int64_t columns, GraphElement element = GraphElement::F32) {
    const TokenLayout& q = m_problem.layouts.q;
    GraphTensor tensor = packed({entries(), q.heads, q.tokens, columns}, element);
    tensor.isVirtual = true;
    return add(std::move(tensor));
  }
  /// One float32 for each row of scores, in memory, as the log-sum-exp is.
  int statistics() {
    const TokenLayout& q = m_problem.layouts.q;
    GraphTensor tensor = packed({entries(), q.heads, q.tokens, 1}, GraphElement::F32);
    if (!isRagged()) return add(std::move(tensor));
    tensor.strides = {q.heads * q.tokens, 1, q.heads, 1};
    tensor.offsets = offsets(Tokens::Queries, q.heads);
    return add(std::move(tensor));
  }
  /// The gradient of q in float32, in memory.
  int sums(int dq) {
    const TokenLayout& q = m_problem.layouts.q;
    GraphTensor tensor = packed({entries(), q.heads, q.tokens, q.channels}, GraphElement::F32);
    if (isRagged()) tensor = m_graph.tensors[static_cast<std::size_t>(dq)];
    tensor.element = GraphElement::F32;
    return add(std::move(tensor));
  }
  int scores(GraphElement element = GraphElement::F32) { return rows(m_problem.layouts.k.tokens, element); }

  /// From here on products end where sequences end.
  void addLengths() {
    const GraphTensor lengths = packed({entries(), 1, 1, 1}, GraphElement::I32);
    m_sequences.lengthsQ = add(lengths);
    m_sequences.lengthsKv = add(lengths);
  }
  int lengthsQ() const { return m_sequences.lengthsQ; }
  int lengthsKv() const { return m_sequences.lengthsKv; }

  int numKeys() { return lengthsKv() >= 0 ? lengthsKv() : scalar(m_problem.layouts.k.tokens); }
  int numQueries() { return lengthsQ() >= 0 ? lengthsQ() : scalar(m_problem.layouts.q.tokens); }

  GraphElement element() const { return m_element; }
  TensorGraph take() { return std::move(m_graph); }
  const SequenceTensors& sequences() const { return m_sequences; }
  /// Tensors in memory that only the pattern needs.
  const std::vector<int>& scratch() const { return m_scratch; }

 protected:
  bool isRagged() const { return m_problem.form.format == QkvFormat::Thd; }
  std::int64_t entries() const { return isRagged() ? m_problem.numSequences : m_problem.layouts.q.batch; }

  /// [entries, heads, tokens, channels]. In thd each sequence could have all tokens.
  GraphTensor headTensor(Tokens tokens, const TokenLayout& layout, GraphElement element) {
    GraphTensor tensor{.dims = {entries(), layout.heads, layout.tokens, layout.channels},
                       .strides = {layout.batchStride, layout.headStride, layout.tokenStride, 1},
                       .element = element};
    if (!isRagged()) return tensor;
    tensor.strides[0] = layout.tokens * layout.tokenStride;
    tensor.offsets = offsets(tokens, layout.tokenStride);
    return tensor;
  }

  /// A tensor has one of its own only if its rows have other strides.
  int offsets(Tokens tokens, std::int64_t tokenStride) {
    const bool isOfQueries = tokens == Tokens::Queries;
    for (const SequenceTensors::Offsets& known : m_sequences.offsets)
      if (known.isOfQueries == isOfQueries && known.tokenStride == tokenStride) return known.tensor;
    const int tensor = add(packed({entries() + 1, 1, 1, 1}, GraphElement::I64));
    m_sequences.offsets.push_back({tensor, isOfQueries, tokenStride});
    return tensor;
  }

  /// In thd in memory, with the offsets of the gradient y; cuDNN multiplies them by the number of heads that share one.
  GraphTensor gradientOfAllHeads(const TokenLayout& layout, int y) {
    const std::int64_t heads = m_problem.layouts.q.heads;
    GraphTensor full = packed({entries(), heads, layout.tokens, layout.channels}, m_element);
    full.isVirtual = !isRagged();
    if (full.isVirtual) return full;
    const GraphTensor& gradient = m_graph.tensors[static_cast<std::size_t>(y)];
    full.strides = gradient.strides;
    for (const std::size_t axis : {0, 2}) full.strides[axis] *= heads / layout.heads;
    full.offsets = gradient.offsets;
    return full;
  }

  const AttentionProblem& m_problem;
  GraphElement m_element;
  TensorGraph m_graph;
  SequenceTensors m_sequences;
  std::vector<int> m_scratch;
};

/// Appends steps; every result that is not named is virtual.
class GraphWriter : public GraphTensors {
 public:
  explicit GraphWriter(const AttentionProblem& problem) : GraphTensors(problem, graphElement(problem.dtype)) {}
  using GraphTensors::GraphTensors;

  void step(GraphStep step) { m_graph.steps.push_back(step); }
  /// From rows of queries to keys or channels of keys.
  void productOfQueries(int x, int b, int columns, int inner, int y) {
    step({.operation = GraphOperator::Matmul,
          .x = x,
          .b = b,
          .y = y,
          .rows = lengthsQ(),
          .columns = columns,
          .inner = inner});
  }
  int apply(GraphOperator operation, int x, int b, int y) {
    step({.operation = operation, .x = x, .b = b, .y = y});
    return y;
  }

  /// The scaled scores of q and transposed k.
  int scaledScores(int q, int k) { return apply(GraphOperator::Multiply, products(q, k), scale(), scores()); }
  /// [entries, heads, queries, keys]
  int products(int x, int transposedKeys) {
    const int y = scores();
    productOfQueries(x, transposedKeys, lengthsKv(), -1, y);
    return y;
  }
  int scale() { return scalar(static_cast<float>(m_problem.form.scale)); }

  /// Minus infinity beyond the ends of sequences.
  int padded(int score) {
    if (lengthsQ() < 0) return score;
    const int row = index(score, 2);
    const int column = index(score, 3);
    const int inQueries = compared(GraphOperator::Less, row, lengthsQ());
    const int inKeys = compared(GraphOperator::Less, column, lengthsKv());
    return selected(compared(GraphOperator::And, inQueries, inKeys), score);
  }

  /// Minus infinity on the other side of diagonals.
  int banded(int score) {
    const AttentionForm& form = m_problem.form;
    if (form.right >= 0) {
      int row = index(score, 2);
      if (form.isBottomRight) {
        row = shifted(GraphOperator::Add, row, numKeys(), GraphElement::I32);
        row = shifted(GraphOperator::Subtract, row, numQueries(), GraphElement::I32);
      }
      if (form.right > 0) row = shifted(GraphOperator::Add, row, scalar(form.right), GraphElement::I32);
      score = selected(compared(GraphOperator::GreaterOrEqual, row, index(score, 3)), score);
    }
    if (form.left >= 0) {
      const int row = index(score, 2);
      score = selected(compared(GraphOperator::Greater, shiftedByWindow(index(score, 3)), row), score);
    }
    return score;
  }

  /// The transpose of scores, rounded to the dtype of q.
  int transposedScores(int x) {
    GraphTensor tensor = transposed(m_graph.tensors[static_cast<std::size_t>(x)]);
    tensor.element = m_element;
    tensor.isVirtual = true;
    const int y = add(std::move(tensor));
    step({.operation = GraphOperator::Reshape, .x = x, .y = y});
    return y;
  }

  /// y = x b over the heads of queries; where keys have fewer heads, their gradients are added up.
  void gradientOfKeys(int x, int b, const TokenLayout& layout, int y) {
    const bool isShared = m_problem.layouts.q.heads != layout.heads;
    const int all = isShared ? add(gradientOfAllHeads(layout, y)) : y;
    step({.operation = GraphOperator::Matmul, .x = x, .b = b, .y = all, .rows = lengthsKv(), .inner = lengthsQ()});
    if (isShared) step({.operation = GraphOperator::Sum, .x = all, .y = y});
    if (isShared && isRagged()) m_scratch.push_back(all);
  }

  /// Keys as they stand, of transposed ones.
  int untransposed(int k, const TokenLayout& layout) {
    GraphTensor tensor = headTensor(Tokens::Keys, layout, m_element);
    tensor.isVirtual = true;
    const int y = add(std::move(tensor));
    step({.operation = GraphOperator::Reshape, .x = k, .y = y});
    return y;
  }

 private:
  /// A column, and the length of the window: the keys to the left and the query's own.
  int shiftedByWindow(int column) {
    const AttentionForm& form = m_problem.form;
    const std::int64_t length = form.left + 1;
    if (lengthsQ() < 0 || !form.isBottomRight) {
      const std::int64_t delta = form.delta(m_problem.layouts.q.tokens, m_problem.layouts.k.tokens);
      return shifted(GraphOperator::Add, column, scalar(static_cast<float>(length - delta)), GraphElement::F32);
    }
    column = shifted(GraphOperator::Add, column, scalar(length), GraphElement::I32);
    column = shifted(GraphOperator::Subtract, column, lengthsKv(), GraphElement::I32);
    return shifted(GraphOperator::Add, column, lengthsQ(), GraphElement::I32);
  }

  int index(int score, int axis) {
    const int y = scores(GraphElement::I32);
    step({.operation = GraphOperator::Index, .x = score, .y = y, .axis = axis});
    return y;
  }
  int shifted(GraphOperator operation, int x, int b, GraphElement element) {
    const int y = scores(element);
    step({.operation = operation, .x = x, .b = b, .y = y, .compute = element});
    return y;
  }
  int compared(GraphOperator comparison, int x, int b) { return shifted(comparison, x, b, GraphElement::Boolean); }
  int selected(int kept, int score) {
    const int y = scores();
    step({.operation = GraphOperator::Select,
          .x = score,
          .b = scalar(-std::numeric_limits<float>::infinity()),
          .t = kept,
          .y = y});
    return y;
  }
};

/// The softmax of scores, and its log-sum-exp if that is wanted.
int softmax(GraphWriter& graph, int score, GraphElement element, bool hasLse, AttentionForwardGraph& made) {
  const int largest = graph.apply(GraphOperator::Max, score, -1, graph.rows(1));
  const int below = graph.apply(GraphOperator::Subtract, score, largest, graph.scores());
  const int share = graph.apply(GraphOperator::Exponential, below, -1, graph.scores());
  const int sum = graph.apply(GraphOperator::Sum, share, -1, graph.rows(1));
  if (hasLse) {
    const int logarithm = graph.apply(GraphOperator::Logarithm, sum, -1, graph.rows(1));
    made.lse = graph.apply(GraphOperator::Add, largest, logarithm, graph.statistics());
  }
  return graph.apply(GraphOperator::Divide, share, sum, graph.scores(element));
}

}  // namespace

AttentionForwardGraph attentionForwardGraph(const AttentionProblem& problem, bool hasLse) {
  const AttentionLayouts& layouts = problem.layouts;
  GraphWriter graph(problem);
  AttentionForwardGraph made{.q = graph.queryHeads(layouts.q),
                             .k = graph.keyHeadsTransposed(layouts.k),
                             .v = graph.keyHeads(layouts.v),
                             .y = graph.queryHeads(layouts.y)};
  if (problem.form.cuSeqlensQSlot >= 0) graph.addLengths();
  const int score = graph.banded(graph.padded(graph.scaledScores(made.q, made.k)));
  const int probabilities = softmax(graph, score, graph.element(), hasLse, made);
  graph.productOfQueries(probabilities, made.v, -1, graph.lengthsKv(), made.y);
  made.sequences = graph.sequences();
  made.graph = graph.take();
  return made;
}

/// Source of the pattern and of the version: cudnn-frontend's SDPA with FP8, and TransformerEngine's limits.
AttentionForwardGraph fp8AttentionForwardGraph(const AttentionProblem& problem, bool hasLse) {
  constexpr std::size_t kOldestVersion = 91401;  // 9.14.0 itself has faults
  constexpr std::size_t kOldestVersionOfWindows = 92100;
  constexpr float kProbabilityScale = 448.0F;
  const AttentionLayouts& layouts = problem.layouts;
  GraphWriter graph(problem, GraphElement::E4M3);
  AttentionForwardGraph made{.q = graph.queryHeads(layouts.q),
                             .k = graph.keyHeadsTransposed(layouts.k),
                             .v = graph.keyHeads(layouts.v),
                             .y = graph.queryHeads(layouts.y, graphElement(problem.dtype)),
                             .scaleQ = graph.number(),
                             .scaleK = graph.number(),
                             .scaleV = graph.number(),
                             .amaxProbabilities = graph.number(),
                             .amaxY = graph.number()};
  int score = graph.scaledScores(made.q, made.k);
  for (const int scale : {made.scaleQ, made.scaleK})
    score = graph.apply(GraphOperator::Multiply, score, scale, graph.scores());
  const int probabilities = softmax(graph, graph.banded(score), GraphElement::F32, hasLse, made);
  graph.apply(GraphOperator::LargestMagnitude, probabilities, -1, made.amaxProbabilities);
  const int codes = graph.apply(GraphOperator::Multiply, probabilities, graph.scalar(kProbabilityScale),
                                graph.scores(GraphElement::E4M3));
  int y = graph.apply(GraphOperator::Matmul, codes, made.v, graph.rows(layouts.y.channels));
  for (const int scale : {graph.scalar(1.0F / kProbabilityScale), made.scaleV})
    y = graph.apply(GraphOperator::Multiply, y, scale, graph.rows(layouts.y.channels));
  graph.apply(GraphOperator::Multiply, y, graph.scalar(1.0F), made.y);
  graph.apply(GraphOperator::LargestMagnitude, y, -1, made.amaxY);
  made.graph = graph.take();
  made.graph.oldestVersion = problem.form.left >= 0 ? kOldestVersionOfWindows : kOldestVersion;
  return made;
}

AttentionBackwardGraph attentionBackwardGraph(const AttentionProblem& problem) {
  constexpr std::int64_t kKeyMultiple = 128;  // Without lengths other numbers of keys have given NaN without an error.
  const AttentionLayouts& layouts = problem.layouts;
  const AttentionLayouts& gradients = problem.gradients;
  GraphWriter graph(problem);
  AttentionBackwardGraph made{.q = graph.queryHeads(layouts.q),
                              .k = graph.keyHeadsTransposed(layouts.k),
                              .v = graph.keyHeadsTransposed(layouts.v),
                              .y = graph.queryHeads(layouts.y),
                              .dy = graph.queryHeads(gradients.y),
                              .lse = graph.statistics(),
                              .dq = graph.queryHeads(gradients.q),
                              .dk = graph.keyHeads(gradients.k),
                              .dv = graph.keyHeads(gradients.v)};
  const int deltas = graph.statistics();
  const int sums = graph.sums(made.dq);
  if (problem.form.cuSeqlensQSlot >= 0 || layouts.k.tokens % kKeyMultiple != 0) graph.addLengths();

  const int squares = graph.apply(GraphOperator::Multiply, made.dy, made.y, graph.rows(layouts.y.channels));
  const int delta = graph.apply(GraphOperator::Sum, squares, -1, graph.rows(1));
  graph.apply(GraphOperator::Multiply, delta, graph.scalar(1.0F), deltas);

  const int score = graph.padded(graph.scaledScores(made.q, made.k));
  const int below = graph.apply(GraphOperator::Subtract, score, made.lse, graph.scores());
  const int probabilities = graph.apply(GraphOperator::Exponential, graph.banded(below), -1, graph.scores());
  graph.gradientOfKeys(graph.transposedScores(probabilities), made.dy, layouts.v, made.dv);

  const int centred = graph.apply(GraphOperator::Subtract, graph.products(made.dy, made.v), deltas, graph.scores());
  const int gradScores = graph.apply(GraphOperator::Multiply, centred, probabilities, graph.scores());
  const int gradProducts = graph.apply(GraphOperator::Multiply, gradScores, graph.scale(), graph.scores());
  graph.gradientOfKeys(graph.transposedScores(gradProducts), made.q, layouts.k, made.dk);
  graph.productOfQueries(gradProducts, graph.untransposed(made.k, layouts.k), -1, graph.lengthsKv(), sums);
  graph.apply(GraphOperator::Identity, sums, -1, made.dq);
  made.scratch = graph.scratch();
  made.scratch.insert(made.scratch.end(), {deltas, sums});
  made.sequences = graph.sequences();
  made.graph = graph.take();
  return made;
}

}  // namespace fuseline::cuda
