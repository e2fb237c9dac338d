// Norms and activations in any order of operations: elementwise nodes and reductions between two tensors are computed
// on sample numbers and compared with the functions of ops. Constant vectors have sample numbers as well, so that the
// result tells which of them is the weight and which the bias.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_numbers.h"
#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline::patterns {

namespace {

constexpr std::array kReductions = {"ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2"};
constexpr std::array kFunctions = {"Erf", "Tanh", "Sigmoid", "Exp", "Max", "Min", "Clip", "Swish", "Softplus"};
constexpr std::array kOtherNodes = {"Add", "Sub", "Mul",  "Div",    "Pow",   "Sqrt",      "Reciprocal", "Neg",
                                    "Abs", "Sum", "Relu", "Expand", "Shape", "Unsqueeze", "Reshape"};

template <std::size_t count>
bool isAmong(const std::array<const char*, count>& types, std::string_view type) {
  return std::ranges::find(types, type) != types.end();
}

/// The nodes between a tensor and one that all its inputs come from.
struct Sampled {
  std::string x;
  std::vector<std::string> vectors;  // constants, as nodes read them
  std::vector<std::string> scalars;  // constants with one element
  Shape reshaped;                    // a constant shape on the way
  bool hasReshape = false;
  bool hasReduction = false;
  bool hasFunction = false;
};

/// Walks upstream, from the last node in execution order to the first.
class SampledWalk {
 public:
  explicit SampledWalk(Reading graph) : m_graph(graph) {}

  /// Each tensor on which alone this one depends, nearest first.
  std::vector<Sampled> from(Name tensor) {
    std::vector<Sampled> found;
    for (int step = 0; step < kMostNodes && (step == 0 || !m_open.empty()); ++step) {
      const std::string next = step == 0 ? m_graph.source(tensor) : m_open.rbegin()->second;
      if (step > 0) m_open.erase(std::prev(m_open.end()));
      const ::onnx::NodeProto* const node = m_graph.maker(next);
      if (!node || !open(*node, next)) break;
      if (m_open.size() != 1) continue;
      m_sampled.x = m_open.begin()->second;
      found.push_back(m_sampled);
    }
    return found;
  }

 private:
  static constexpr int kMostNodes = 40;

  /// False: the node is no function of numbers.
  bool open(const ::onnx::NodeProto& node, Name tensor) {
    const std::string& type = node.op_type();
    const bool isReduction = isAmong(kReductions, type), isFunction = isAmong(kFunctions, type);
    if (!m_graph.makerOf(type, tensor) || !(isReduction || isFunction || isAmong(kOtherNodes, type))) return false;
    if (isReduction && numLastAxes(m_graph, node, inputOf(node, 0)) != 1) return false;
    m_sampled.hasReduction = m_sampled.hasReduction || isReduction;
    m_sampled.hasFunction = m_sampled.hasFunction || isFunction;
    if (type == "Reshape") {
      m_sampled.hasReshape = true;
      m_sampled.reshaped = m_graph.integers(inputOf(node, 1)).value_or(m_sampled.reshaped);
    }
    for (const std::string& input : node.input()) {
      if (input.empty()) continue;
      if (!m_graph.constant(input))
        m_open.emplace(m_graph.position(input), m_graph.source(input));
      else if (m_graph.number(input))
        m_sampled.scalars.push_back(input);
      else if (weight(m_graph, input) && std::ranges::find(m_sampled.vectors, input) == m_sampled.vectors.end())
        m_sampled.vectors.push_back(input);
    }
    return true;
  }

  Reading m_graph;
  Sampled m_sampled;
  std::set<std::pair<int, std::string>> m_open;
};

// ---- samples

using Values = std::vector<double>;

/// Numbers without order, the same in each import. Source of the factor: Knuth, golden ratio hashing.
Values sampleNumbers(std::int64_t count, double first, double scale, double shift) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double turned = (static_cast<double>(i) + first) * 0.6180339887498949;
    values.push_back(scale * (2.0 * (turned - std::floor(turned)) - 1.0 + shift));
  }
  return values;
}

/// The first row of x.
struct Sample {
  Values x, y;
  std::vector<Values> vectors;  // of Sampled::vectors
};

/// Numbers of activations are written with few digits, or rounded to 16 bits.
double exactNumber(Reading graph, Name scalar) {
  constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
  const double number = *graph.number(scalar), tolerance = graph.roundingOf(scalar);
  for (const double exact : {std::numbers::sqrt2, 1.0 / std::numbers::sqrt2, kRoot, 2.0 * kRoot, kCubic, kCubic * kRoot,
                             2.0 * kCubic * kRoot, 1.702})
    for (const double signedExact : {exact, -exact})
      if (std::abs(number - signedExact) <= tolerance * exact) return signedExact;
  return number;
}

constexpr std::int64_t kLongestRow = 1 << 15;

/// With one element along axes that are symbols, or all but the last one if x is large; with two if a Reshape may join
/// them with the last one. A Reshape among the nodes may have numbers for these symbols.
Shape sampleShape(const ::onnx::TypeProto::Tensor& type, const Sampled& sampled, std::int64_t extent) {
  const std::int64_t few = sampled.hasReshape ? 2 : 1;
  Shape shape(static_cast<std::size_t>(type.shape().dim_size()), few);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto& axis = type.shape().dim(static_cast<int>(i));
    const bool isWritten = sampled.reshaped.size() == shape.size() && sampled.reshaped[i] > 0;
    const std::int64_t other = isWritten ? sampled.reshaped[i] : few;
    shape[i] = std::clamp<std::int64_t>(axis.has_dim_value() ? axis.dim_value() : other, 1, kLongestRow);
  }
  std::int64_t size = 1;
  for (const std::int64_t each : shape) size = std::min(size * each, kLongestRow + 1);
  if (size > kLongestRow)
    for (std::int64_t& each : shape) each = std::min(each, few);
  shape.back() = extent;
  for (auto axis = shape.begin(); axis + 1 < shape.end() && numElements(shape) > 4 * kLongestRow; ++axis) *axis = 1;
  return shape;
}

std::optional<Sample> sampleOf(Reading graph, Name tensor, const Sampled& sampled, double scale, double shift) {
  const auto* const type = graph.type(sampled.x);
  const auto extent = lastExtent(graph, sampled.x);
  if (!type || !extent || *extent < 1 || *extent > kLongestRow || !floatTypeOf(type->elem_type())) return std::nullopt;
  if (!mayHaveSameShape(graph, tensor, sampled.x)) return std::nullopt;
  const Shape shape = sampleShape(*type, sampled, *extent);
  OnnxNumbers numbers(graph, {}, {});
  Sample sample{.x = sampleNumbers(numElements(shape), 0.0, scale, shift), .y = {}, .vectors = {}};
  numbers.give(sampled.x, {shape, sample.x});
  for (const std::string& scalar : sampled.scalars)
    numbers.give(scalar, {shapeOf(*graph.constant(scalar)), {exactNumber(graph, scalar)}});
  for (const std::string& vector : sampled.vectors) {
    const auto* const proto = vectorWeight(graph, vector);
    if (!proto || *(proto->dims().end() - 1) != *extent) return std::nullopt;
    sample.vectors.push_back(sampleNumbers(*extent, 100.0 * static_cast<double>(sample.vectors.size() + 1), 1.0, 0.25));
    numbers.give(vector, {shapeOf(*proto), sample.vectors.back()});
  }
  const auto made = numbers.of(tensor);
  if (!made || made->shape.size() != shape.size() || made->shape.back() != *extent || made->values.empty())
    return std::nullopt;
  sample.y.assign(made->values.begin(), made->values.begin() + *extent);  // a constant shape may repeat the row
  sample.x.resize(static_cast<std::size_t>(*extent));
  return sample;
}

/// Beyond the limits of a Clip, such as those of f16.
constexpr double kHuge = 1e6;

bool isClose(const Values& a, const Values& b, double tolerance) {
  double largest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return difference <= tolerance * largest;  // false where one is NaN
}

// ---- norms

enum class NormKind { Layer, Rms, L2 };

struct SampledNorm {
  NormKind kind = NormKind::Layer;
  double eps = 0.0;
  int gamma = -1, beta = -1;  // of the vectors; -1: there is none
  bool isZeroCentred = false;
};

Values computed(const SampledNorm& norm, const Sample& sample) {
  const auto count = static_cast<double>(sample.x.size());
  double sum = 0.0, squares = 0.0;
  for (const double x : sample.x) sum += x;
  const double mean = norm.kind == NormKind::Layer ? sum / count : 0.0;
  for (const double x : sample.x) squares += (x - mean) * (x - mean);
  const double root = std::sqrt((norm.kind == NormKind::L2 ? squares : squares / count) + norm.eps);
  Values y;
  for (std::size_t i = 0; i < sample.x.size(); ++i) {
    const double gamma = norm.gamma < 0 ? 1.0 : sample.vectors[static_cast<std::size_t>(norm.gamma)][i];
    const double beta = norm.beta < 0 ? 0.0 : sample.vectors[static_cast<std::size_t>(norm.beta)][i];
    y.push_back((sample.x[i] - mean) / root * (norm.isZeroCentred ? 1.0 + gamma : gamma) + beta);
  }
  return y;
}

/// All norms that these vectors and numbers may belong to.
std::vector<SampledNorm> candidatesOf(Reading graph, const Sampled& sampled) {
  std::vector<double> eps;
  for (const std::string& scalar : sampled.scalars)
    if (const double number = *graph.number(scalar); number > 0.0 && number < 1.0)
      eps.insert(eps.end(), {number, number * number});  // within the root, or outside
  eps.push_back(0.0);                                    // last, because a tiny one looks like none
  std::vector<std::pair<int, int>> roles;                // of the vectors
  if (sampled.vectors.empty()) roles.emplace_back(-1, -1);
  if (sampled.vectors.size() == 1) roles.emplace_back(0, -1);
  if (sampled.vectors.size() == 2) roles.assign({std::pair(0, 1), std::pair(1, 0)});
  std::vector<SampledNorm> candidates;
  for (const NormKind kind : {NormKind::Layer, NormKind::Rms, NormKind::L2})
    for (const double each : eps)
      for (const auto& [gamma, beta] : roles)
        for (const bool isZeroCentred : {false, true}) {
          if (isZeroCentred && (gamma < 0 || kind == NormKind::L2)) continue;
          if (kind == NormKind::L2 && gamma >= 0) continue;
          if (kind != NormKind::Layer && beta >= 0) continue;
          candidates.push_back({kind, each, gamma, beta, isZeroCentred});
        }
  return candidates;
}

/// In double precision, all orders of operations agree to many digits.
constexpr double kNormTolerance = 1e-10;

std::optional<SampledNorm> normOf(Reading graph, Name tensor, const Sampled& sampled) {
  if (!sampled.hasReduction || sampled.vectors.size() > 2) return std::nullopt;
  // A row with small numbers tells which of the constants is eps.
  const auto large = sampleOf(graph, tensor, sampled, 1.0, 0.1);
  const auto small = large ? sampleOf(graph, tensor, sampled, 1e-3, 0.1) : std::nullopt;
  const auto huge = small ? sampleOf(graph, tensor, sampled, kHuge, 0.1) : std::nullopt;
  if (!huge || huge->x.size() < 2) return std::nullopt;
  for (const SampledNorm& norm : candidatesOf(graph, sampled))
    if (isClose(large->y, computed(norm, *large), kNormTolerance) &&
        isClose(small->y, computed(norm, *small), kNormTolerance) &&
        isClose(huge->y, computed(norm, *huge), kNormTolerance))
      return norm;
  return std::nullopt;
}

FoundOperation foundNorm(Reading graph, const Sampled& sampled, const SampledNorm& norm) {
  constexpr std::array kNames = {"LayerNorm", "RMSNorm", "L2Normalization"};
  FoundOperation found{.operation = kNames.at(static_cast<std::size_t>(norm.kind)),
                       .attributes = {{"eps", shortest(norm.eps)}},
                       .inputs = {{"x", sampled.x}}};
  if (norm.kind == NormKind::L2) return found;
  const auto weightOf = [&](const char* parameter, int index, double fill) {
    const auto* const proto = index < 0 ? nullptr : weight(graph, sampled.vectors[static_cast<std::size_t>(index)]);
    return FoundWeight{.parameter = parameter, .constant = proto, .fill = fill, .isSpread = proto != nullptr};
  };
  found.attributes["normalized_shape"] = Shape{*lastExtent(graph, sampled.x)};
  if (norm.isZeroCentred) found.attributes["zero_centered_gamma"] = true;
  found.weights = {weightOf("weight", norm.gamma, 1.0)};
  if (norm.kind == NormKind::Layer) found.weights.push_back(weightOf("bias", norm.beta, 0.0));
  if (norm.gamma >= 0) {
    const std::string& gamma = sampled.vectors[static_cast<std::size_t>(norm.gamma)];
    found.dtype = dtypeRead(graph, gamma, *weight(graph, gamma));
  }
  return found;
}

// ---- activations

struct SampledActivation {
  const char* operation;
  double (*function)(double x);
  const char* approximate = nullptr;  // of GELU
};

double sigmoidOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double cubicOf(double x) { return std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x); }

constexpr std::array kSampledActivations = {
    SampledActivation{"ReLU", [](double x) { return std::max(x, 0.0); }},
    SampledActivation{"SReLU", [](double x) { return x > 0.0 ? x * x : 0.0; }},
    SampledActivation{"GELU", [](double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }, "none"},
    SampledActivation{"GELU", [](double x) { return 0.5 * x * (1.0 + std::tanh(cubicOf(x))); }, "tanh"},
    SampledActivation{"QGELU", [](double x) { return x * sigmoidOf(1.702 * x); }},
    SampledActivation{"SiLU", [](double x) { return x * sigmoidOf(x); }}};

/// Constants have seven digits, and two of them are multiplied.
constexpr double kActivationTolerance = 1e-6;

Found activationOf(Reading graph, Name tensor, const Sampled& sampled) {
  if (!sampled.hasFunction || sampled.hasReduction || !sampled.vectors.empty()) return std::nullopt;
  const auto large = sampleOf(graph, tensor, sampled, 6.0, 0.0), small = sampleOf(graph, tensor, sampled, 1.0, 0.0);
  constexpr std::size_t kFewest = 8;  // fewer numbers may fit by chance
  const auto huge = sampleOf(graph, tensor, sampled, kHuge, 0.0);
  if (!large || !small || !huge || large->x.size() < kFewest) return std::nullopt;
  for (const SampledActivation& each : kSampledActivations) {
    const auto isAlike = [&](const Sample& sample) {
      Values y = sample.x;
      for (double& value : y) value = each.function(value);
      return isClose(sample.y, y, kActivationTolerance);
    };
    if (!isAlike(*large) || !isAlike(*small) || !isAlike(*huge)) continue;
    FoundOperation found{.operation = each.operation, .inputs = {{"x", sampled.x}}};
    if (each.approximate) found.attributes["approximate"] = each.approximate;
    return found;
  }
  return std::nullopt;
}

}  // namespace

/// The largest one: a norm of centred numbers may be one of all, too.
Found sampledNorm(Reading graph, Name tensor) {
  Found found;
  for (const Sampled& sampled : SampledWalk(graph).from(tensor))
    if (const auto norm = normOf(graph, tensor, sampled)) found = foundNorm(graph, sampled, *norm);
  return found;
}

Found sampledActivation(Reading graph, Name tensor) {
  for (const Sampled& sampled : SampledWalk(graph).from(tensor))
    if (Found found = activationOf(graph, tensor, sampled)) return found;
  return std::nullopt;
}

}  // namespace fuseline::patterns
