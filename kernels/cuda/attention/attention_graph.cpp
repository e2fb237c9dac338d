// The operations of attention in the order and with the shapes by which cuDNN knows them.
// SPDX-License-Identifier: Apache-2.0
// cuDNN recognizes attention by its pattern (NVIDIA's cudnn-frontend 1.23 describes it): keys come transposed, masks
// select minus infinity by comparing indices of rows and columns, and backward keeps two float32 tensors in memory.
#include "kernels/cuda/attention/attention_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

GraphElement graphElement(DType dtype) {
  if (dtype == DType::F16) return GraphElement::F16;
  return dtype == DType::BF16 ? GraphElement::BF16 : GraphElement::F32;
}

namespace {

constexpr std::int64_t kKeyMultiple = 128;
constexpr std::int64_t kChannelMultiple = 8;  // rows of heads begin at multiples of 16 bytes

Verdict lacks(std::string_view what) { return Verdict::no(fmt::format("cuDNN attention is not used {}", what)); }

Verdict fitsRules(const AttentionProblem& problem) {
  const AttentionForm& form = problem.form;
  if (problem.dtype == DType::F32) return lacks("for float32; choose bf16 or f16");
  if (form.cuSeqlensQSlot >= 0) return lacks("with sequence lengths");
  if (form.maskSlot >= 0) return lacks("with an arbitrary mask");
  if (form.bias != AttentionBias::None) return lacks("with a bias");
  if (form.hasSink()) return lacks("with a sink");
  if (form.softcap > 0.0) return lacks("with softcap");
  if (form.dropout > 0.0) return lacks("with dropout, because its mask would differ from the CPU's");
  return Verdict::yes();
}

/// Channels of one head. Wider ones need Hopper.
Verdict fitsChannels(const AttentionForm& form, ComputeCapability capability) {
  constexpr std::int64_t kMost = 128;
  constexpr std::int64_t kMostOfHopper = 256;
  const std::int64_t widest = std::max(form.qkChannels, form.vChannels);
  if (form.qkChannels % kChannelMultiple != 0 || form.vChannels % kChannelMultiple != 0)
    return lacks(fmt::format("for heads of {} channels, not a multiple of {}", widest, kChannelMultiple));
  const bool isHopper = capability.major == 9;
  if (widest > (isHopper ? kMostOfHopper : kMost) || (form.qkChannels != form.vChannels && widest > kMost))
    return lacks(fmt::format("for heads of {} channels", widest));
  return Verdict::yes();
}

/// With other numbers of keys its backward pass has given NaN without an error, and rows that attend to no key are not
/// 0.
Verdict fitsTokens(const AttentionProblem& problem) {
  const std::int64_t queries = problem.layouts.q.tokens;
  const std::int64_t keys = problem.layouts.k.tokens;
  if (keys % kKeyMultiple != 0 || keys == 0 || queries < 2)
    return lacks(fmt::format("for {} queries and {} keys; it needs at least 2 queries and multiples of {} keys",
                             queries, keys, kKeyMultiple));
  const bool isBanded = problem.form.left >= 0 || problem.form.isBottomRight;
  if (isBanded && problem.form.right >= 0 && queries > keys)
    return lacks(fmt::format("for {} queries and {} keys, where some rows would see no key", queries, keys));
  if (problem.form.left >= 0 && queries > keys) return lacks("with a window and more queries than keys");
  return Verdict::yes();
}

/// [entries, heads, tokens, channels]
GraphTensor headTensor(const TokenLayout& layout, GraphElement element) {
  return {.dims = {layout.batch, layout.heads, layout.tokens, layout.channels},
          .strides = {layout.batchStride, layout.headStride, layout.tokenStride, 1},
          .element = element};
}

/// Rows and columns are swapped, in memory nothing is.
GraphTensor transposed(GraphTensor tensor) {
  std::swap(tensor.dims[2], tensor.dims[3]);
  std::swap(tensor.strides[2], tensor.strides[3]);
  return tensor;
}

GraphTensor packed(const GraphExtents& dims, GraphElement element) {
  return {.dims = dims, .strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}, .element = element};
}

/// Appends steps; every result that is not named is virtual.
class GraphWriter {
 public:
  explicit GraphWriter(const AttentionProblem& problem) : GraphWriter(problem, graphElement(problem.dtype)) {}
  /// element: of q, k and v
  GraphWriter(const AttentionProblem& problem, GraphElement element) : m_problem(problem), m_element(element) {}

  int add(GraphTensor tensor) {
    m_graph.tensors.push_back(std::move(tensor));
    return static_cast<int>(m_graph.tensors.size()) - 1;
  }
  int scalar(float value) { return add({.element = GraphElement::F32, .scalar = value}); }
  int scalar(std::int64_t value) {
    return add({.element = GraphElement::I32, .scalar = static_cast<std::int32_t>(value)});
  }
  int heads(const TokenLayout& layout) { return heads(layout, m_element); }
  int heads(const TokenLayout& layout, GraphElement element) { return add(headTensor(layout, element)); }
  /// One number in memory.
  int number() { return add({.element = GraphElement::F32}); }
  int headsTransposed(const TokenLayout& layout) { return add(transposed(headTensor(layout, m_element))); }
  /// [entries, heads, queries, columns]
  int rows(std::int64_t columns, GraphElement element = GraphElement::F32, bool isVirtual = true) {
    const TokenLayout& q = m_problem.layouts.q;
    GraphTensor tensor = packed({q.batch, q.heads, q.tokens, columns}, element);
    tensor.isVirtual = isVirtual;
    return add(std::move(tensor));
  }
  int scores(GraphElement element = GraphElement::F32) { return rows(m_problem.layouts.k.tokens, element); }

  void step(GraphStep step) { m_graph.steps.push_back(step); }
  int apply(GraphOperator operation, int x, int b, int y) {
    step({.operation = operation, .x = x, .b = b, .y = y});
    return y;
  }

  /// The scaled scores of q and transposed k.
  int scaledScores(int q, int k) {
    const int products = apply(GraphOperator::Matmul, q, k, scores());
    return apply(GraphOperator::Multiply, products, scale(), scores());
  }
  int scale() { return scalar(static_cast<float>(m_problem.form.scale)); }

  /// Minus infinity where the mask leaves out a pair.
  int masked(int score) {
    const AttentionForm& form = m_problem.form;
    const std::int64_t queries = m_problem.layouts.q.tokens;
    const std::int64_t keys = m_problem.layouts.k.tokens;
    if (form.right >= 0) {
      int row = index(score, 2);
      if (form.isBottomRight) {
        row = shifted(GraphOperator::Add, row, scalar(keys), GraphElement::I32);
        row = shifted(GraphOperator::Subtract, row, scalar(queries), GraphElement::I32);
      }
      if (form.right > 0) row = shifted(GraphOperator::Add, row, scalar(form.right), GraphElement::I32);
      score = selected(GraphOperator::GreaterOrEqual, row, index(score, 3), score);
    }
    if (form.left >= 0) {
      // A length: the keys to the left and the query's own.
      const auto length = static_cast<float>(form.left + 1 - form.delta(queries, keys));
      const int row = index(score, 2);
      const int column = shifted(GraphOperator::Add, index(score, 3), scalar(length), GraphElement::F32);
      score = selected(GraphOperator::Greater, column, row, score);
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
    const TokenLayout& q = m_problem.layouts.q;
    if (q.heads == layout.heads) return step({.operation = GraphOperator::Matmul, .x = x, .b = b, .y = y});
    GraphTensor full = packed({q.batch, q.heads, layout.tokens, layout.channels}, m_element);
    full.isVirtual = true;
    const int all = apply(GraphOperator::Matmul, x, b, add(std::move(full)));
    step({.operation = GraphOperator::Sum, .x = all, .y = y});
  }

  /// Keys as they stand, of transposed ones.
  int untransposed(int k, const TokenLayout& layout) {
    GraphTensor tensor = headTensor(layout, m_element);
    tensor.isVirtual = true;
    const int y = add(std::move(tensor));
    step({.operation = GraphOperator::Reshape, .x = k, .y = y});
    return y;
  }

  GraphElement element() const { return m_element; }
  TensorGraph take() { return std::move(m_graph); }

 private:
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
  int selected(GraphOperator comparison, int x, int b, int score) {
    const int kept = scores(GraphElement::Boolean);
    step({.operation = comparison, .x = x, .b = b, .y = kept, .compute = GraphElement::Boolean});
    const int y = scores();
    step({.operation = GraphOperator::Select,
          .x = score,
          .b = scalar(-std::numeric_limits<float>::infinity()),
          .t = kept,
          .y = y});
    return y;
  }

  const AttentionProblem& m_problem;
  GraphElement m_element;
  TensorGraph m_graph;
};

}  // namespace

Verdict fitsAttentionGraph(const AttentionProblem& problem, Phase phase, ComputeCapability capability) {
  if (const Verdict rules = fitsRules(problem); !rules) return rules;
  if (const Verdict channels = fitsChannels(problem.form, capability); !channels) return channels;
  constexpr std::int64_t kMostBackward = 128;
  if (phase == Phase::Backward && capability.major != 9 && problem.form.qkChannels > kMostBackward)
    return lacks(fmt::format("for gradients of heads of {} channels", problem.form.qkChannels));
  return fitsTokens(problem);
}

Verdict fitsFp8AttentionGraph(const AttentionProblem& problem, Phase phase, ElementFormat format,
                              ComputeCapability capability) {
  constexpr std::int64_t kQueryMultiple = 64;  // of masks from the bottom right
  if (phase == Phase::Backward)
    return Verdict::no(
        "cuDNN's FP8 gradients need the scale of the gradients of scores beforehand, but Fuseline finds it in the "
        "step");
  if (format != ElementFormat::E4M3)
    return Verdict::no(fmt::format("cuDNN's FP8 attention reads e4m3, not {}", formatName(format)));
  if (capability != ComputeCapability() && capability.major != 10)
    return Verdict::no(
        "cuDNN's FP8 attention writes bf16 and f16 only on GPUs of compute capability 10.0 and 10.3 (Blackwell)");
  if (const Verdict fits = fitsAttentionGraph(problem, phase, capability); !fits) return fits;
  const std::int64_t queries = problem.layouts.q.tokens;
  if (problem.form.isBottomRight && problem.form.right >= 0 && queries % kQueryMultiple != 0)
    return lacks(fmt::format("in FP8 with a mask from the bottom right for {} queries, not a multiple of {}", queries,
                             kQueryMultiple));
  return Verdict::yes();
}

namespace {

/// The softmax of scores, and its log-sum-exp if that is wanted.
int softmax(GraphWriter& graph, int score, GraphElement element, bool hasLse, AttentionForwardGraph& made) {
  const int largest = graph.apply(GraphOperator::Max, score, -1, graph.rows(1));
  const int below = graph.apply(GraphOperator::Subtract, score, largest, graph.scores());
  const int share = graph.apply(GraphOperator::Exponential, below, -1, graph.scores());
  const int sum = graph.apply(GraphOperator::Sum, share, -1, graph.rows(1));
  if (hasLse) {
    const int logarithm = graph.apply(GraphOperator::Logarithm, sum, -1, graph.rows(1));
    made.lse = graph.apply(GraphOperator::Add, largest, logarithm, graph.rows(1, GraphElement::F32, false));
  }
  return graph.apply(GraphOperator::Divide, share, sum, graph.scores(element));
}

}  // namespace

AttentionForwardGraph attentionForwardGraph(const AttentionProblem& problem, bool hasLse) {
  const AttentionLayouts& layouts = problem.layouts;
  GraphWriter graph(problem);
  AttentionForwardGraph made{.q = graph.heads(layouts.q),
                             .k = graph.headsTransposed(layouts.k),
                             .v = graph.heads(layouts.v),
                             .y = graph.heads(layouts.y)};
  const int score = graph.masked(graph.scaledScores(made.q, made.k));
  const int probabilities = softmax(graph, score, graph.element(), hasLse, made);
  graph.apply(GraphOperator::Matmul, probabilities, made.v, made.y);
  made.graph = graph.take();
  return made;
}

/// Source of the pattern and of the version: cudnn-frontend's SDPA with FP8, and TransformerEngine's limits.
AttentionForwardGraph fp8AttentionForwardGraph(const AttentionProblem& problem, bool hasLse) {
  constexpr std::size_t kOldestVersion = 91400;
  constexpr std::size_t kOldestVersionOfWindows = 92100;
  constexpr float kProbabilityScale = 448.0F;
  const AttentionLayouts& layouts = problem.layouts;
  GraphWriter graph(problem, GraphElement::E4M3);
  AttentionForwardGraph made{.q = graph.heads(layouts.q),
                             .k = graph.headsTransposed(layouts.k),
                             .v = graph.heads(layouts.v),
                             .y = graph.heads(layouts.y, graphElement(problem.dtype)),
                             .scaleQ = graph.number(),
                             .scaleK = graph.number(),
                             .scaleV = graph.number(),
                             .amaxProbabilities = graph.number(),
                             .amaxY = graph.number()};
  int score = graph.scaledScores(made.q, made.k);
  for (const int scale : {made.scaleQ, made.scaleK})
    score = graph.apply(GraphOperator::Multiply, score, scale, graph.scores());
  const int probabilities = softmax(graph, graph.masked(score), GraphElement::F32, hasLse, made);
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
  const AttentionLayouts& layouts = problem.layouts;
  GraphWriter graph(problem);
  AttentionBackwardGraph made{.q = graph.heads(layouts.q),
                              .k = graph.headsTransposed(layouts.k),
                              .v = graph.headsTransposed(layouts.v),
                              .y = graph.heads(layouts.y),
                              .dy = graph.heads(problem.gradients.y),
                              .lse = graph.rows(1, GraphElement::F32, false),
                              .dq = graph.heads(problem.gradients.q),
                              .dk = graph.heads(problem.gradients.k),
                              .dv = graph.heads(problem.gradients.v),
                              .deltas = graph.rows(1, GraphElement::F32, false),
                              .sums = graph.rows(layouts.q.channels, GraphElement::F32, false)};
  const int products = graph.apply(GraphOperator::Multiply, made.dy, made.y, graph.rows(layouts.y.channels));
  const int delta = graph.apply(GraphOperator::Sum, products, -1, graph.rows(1));
  graph.apply(GraphOperator::Multiply, delta, graph.scalar(1.0F), made.deltas);

  const int scaled = graph.scaledScores(made.q, made.k);
  const int below = graph.apply(GraphOperator::Subtract, scaled, made.lse, graph.scores());
  const int probabilities = graph.apply(GraphOperator::Exponential, graph.masked(below), -1, graph.scores());
  graph.gradientOfKeys(graph.transposedScores(probabilities), made.dy, layouts.v, made.dv);

  const int gradShares = graph.apply(GraphOperator::Matmul, made.dy, made.v, graph.scores());
  const int centred = graph.apply(GraphOperator::Subtract, gradShares, made.deltas, graph.scores());
  const int gradScores = graph.apply(GraphOperator::Multiply, centred, probabilities, graph.scores());
  const int gradProducts = graph.apply(GraphOperator::Multiply, gradScores, graph.scale(), graph.scores());
  graph.gradientOfKeys(graph.transposedScores(gradProducts), made.q, layouts.k, made.dk);
  graph.apply(GraphOperator::Matmul, gradProducts, graph.untransposed(made.k, layouts.k), made.sums);
  graph.apply(GraphOperator::Identity, made.sums, -1, made.dq);
  made.graph = graph.take();
  return made;
}

}  // namespace fuseline::cuda
