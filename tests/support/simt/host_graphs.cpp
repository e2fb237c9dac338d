// Every tensor as doubles by its dims, whatever its strides; memory is read and written through the strides.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/host_graphs.h"

#include "core/numerics/minifloat.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/stream/launch_count.h"
#include "tests/support/simt/simt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace fuseline::testing {

namespace {

using cuda::GraphElement;
using cuda::GraphExtents;
using cuda::GraphOperator;
using cuda::GraphStep;
using cuda::GraphTensor;

using Place = std::array<std::int64_t, 4>;

std::int64_t count(const GraphExtents& dims) { return dims[0] * dims[1] * dims[2] * dims[3]; }

std::int64_t offsetOf(const Place& at, const GraphExtents& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * strides[axis];
  return offset;
}

template <class Function>
void forEachPlace(const GraphExtents& dims, Function f) {
  for (std::int64_t i = 0; i < count(dims); ++i)
    f(Place{i / (dims[1] * dims[2] * dims[3]), i / (dims[2] * dims[3]) % dims[1], i / dims[3] % dims[2], i % dims[3]},
      static_cast<std::size_t>(i));
}

DType dtypeOf(GraphElement element) {
  if (element == GraphElement::F16) return DType::F16;
  return element == GraphElement::BF16 ? DType::BF16 : DType::F32;
}

std::int64_t bytesOf(GraphElement element) {
  if (element == GraphElement::I64) return sizeof(std::int64_t);
  return element == GraphElement::E4M3 ? 1 : sizeBytes(dtypeOf(element));
}

template <class T>
double numberAt(const std::byte* from) {
  T value = 0;
  std::memcpy(&value, from, sizeof(value));
  return static_cast<double>(value);
}

void encodeAt(double value, GraphElement element, std::byte* to) {
  if (element == GraphElement::E4M3)
    *to = static_cast<std::byte>(E4m3::fromFloat(static_cast<float>(value)));
  else
    encode(std::span(&value, 1), dtypeOf(element), to);
}

double decodedAt(const std::byte* from, GraphElement element) {
  if (element == GraphElement::E4M3) return E4m3::toFloat(std::to_integer<std::uint8_t>(*from));
  if (element == GraphElement::I32) return numberAt<std::int32_t>(from);
  if (element == GraphElement::I64) return numberAt<std::int64_t>(from);
  double value[1];
  decode(from, dtypeOf(element), value);
  return value[0];
}

double rounded(double value, GraphElement element) {
  if (element == GraphElement::I32 || element == GraphElement::Boolean) return value;
  std::array<std::byte, 4> bits;
  encodeAt(value, element, bits.data());
  return decodedAt(bits.data(), element);
}

class GraphRun {
 public:
  GraphRun(const cuda::TensorGraph& graph, std::span<std::byte* const> memory)
      : m_graph(graph), m_memory(memory), m_values(graph.tensors.size()) {}

  void run() {
    for (const GraphStep& step : m_graph.steps) {
      std::vector<double> y(static_cast<std::size_t>(count(tensor(step.y).dims)));
      compute(step, y);
      for (double& value : y) value = rounded(value, tensor(step.y).element);
      if (!tensor(step.y).isVirtual) store(step.y, y);
      m_values[static_cast<std::size_t>(step.y)] = std::move(y);
    }
  }

 private:
  const GraphTensor& tensor(int index) const { return m_graph.tensors.at(static_cast<std::size_t>(index)); }

  /// Loaded, or as a step left them.
  const std::vector<double>& values(int index) {
    std::vector<double>& known = m_values.at(static_cast<std::size_t>(index));
    if (known.empty()) known = loaded(index);
    return known;
  }

  std::vector<double> loaded(int index) const {
    const GraphTensor& of = tensor(index);
    if (of.scalar) return {std::visit([](auto value) { return static_cast<double>(value); }, *of.scalar)};
    if (of.isVirtual) throw std::logic_error("A virtual tensor is read before it is made.");
    std::vector<double> values(static_cast<std::size_t>(count(of.dims)));
    forEachPlace(of.dims, [&](const Place& at, std::size_t i) {
      values[i] = isInMemory(index, at) ? decodedAt(addressOf(index, at), of.element) : kUnknown;
    });
    return values;
  }

  std::byte* addressOf(int index, Place at) const {
    std::byte* const data = m_memory[static_cast<std::size_t>(index)];
    if (!data) throw std::logic_error("A tensor of the graph has no memory.");
    const std::int64_t first = tensor(index).offsets < 0 ? 0 : firstOf(index, std::exchange(at[0], 0));
    return data + (first + offsetOf(at, tensor(index).strides)) * bytesOf(tensor(index).element);
  }

  void store(int index, const std::vector<double>& values) const {
    forEachPlace(tensor(index).dims, [&](const Place& at, std::size_t i) {
      if (isInMemory(index, at)) encodeAt(values[i], tensor(index).element, addressOf(index, at));
    });
  }

  /// Where a batch entry of a tensor with offsets begins, in elements.
  std::int64_t firstOf(int index, std::int64_t entry) const {
    const int offsets = tensor(index).offsets;
    const double first = decodedAt(addressOf(offsets, {entry, 0, 0, 0}), tensor(offsets).element);
    return static_cast<std::int64_t>(first) * sharesOf(index);
  }

  /// Gradients of all heads have the offsets of those that several heads share.
  std::int64_t sharesOf(int index) const {
    for (const GraphStep& step : m_graph.steps)
      if (step.operation == GraphOperator::Sum && step.x == index)
        return tensor(index).dims[1] / tensor(step.y).dims[1];
    return 1;
  }

  /// An entry ends where the next begins.
  bool isInMemory(int index, const Place& at) const {
    const GraphTensor& of = tensor(index);
    if (of.offsets < 0) return true;
    const std::size_t tokens = of.strides[3] > of.strides[2] ? 3 : 2;
    return at[tokens] * of.strides[tokens] < firstOf(index, at[0] + 1) - firstOf(index, at[0]);
  }

  /// The extent of a batch entry that counts. lengths -1: all.
  std::int64_t lengthOf(int lengths, std::int64_t entry, std::int64_t all) {
    if (lengths < 0) return all;
    const auto length = static_cast<std::int64_t>(values(lengths).at(static_cast<std::size_t>(entry)));
    if (length < 0 || length > all) throw std::logic_error("A length is larger than its extent.");
    return length;
  }

  /// Extents of 1 are repeated.
  double at(int index, Place place) {
    const GraphExtents& dims = tensor(index).dims;
    for (std::size_t axis = 0; axis < place.size(); ++axis)
      if (dims[axis] == 1) place[axis] = 0;
    return values(index).at(
        static_cast<std::size_t>(offsetOf(place, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1})));
  }

  void compute(const GraphStep& step, std::vector<double>& y) {
    switch (step.operation) {
      case GraphOperator::Matmul: return multiply(step, y);
      case GraphOperator::Max:
      case GraphOperator::LargestMagnitude:
      case GraphOperator::Sum: return reduce(step, y);
      case GraphOperator::Reshape: return reshape(step, y);
      default:
        forEachPlace(tensor(step.y).dims, [&](const Place& place, std::size_t i) { y[i] = pointwise(step, place); });
    }
  }

  double pointwise(const GraphStep& step, const Place& place) {
    if (step.operation == GraphOperator::Index) return static_cast<double>(place[static_cast<std::size_t>(step.axis)]);
    const double x = at(step.x, place);
    const double b = step.b < 0 ? 0.0 : at(step.b, place);
    switch (step.operation) {
      case GraphOperator::Add: return x + b;
      case GraphOperator::Subtract: return x - b;
      case GraphOperator::Multiply: return x * b;
      case GraphOperator::Divide: return x / b;
      case GraphOperator::GreaterOrEqual: return x >= b ? 1.0 : 0.0;
      case GraphOperator::Greater: return x > b ? 1.0 : 0.0;
      case GraphOperator::Less: return x < b ? 1.0 : 0.0;
      case GraphOperator::And: return x != 0.0 && b != 0.0 ? 1.0 : 0.0;
      case GraphOperator::Exponential: return std::exp(x);
      case GraphOperator::Logarithm: return std::log(x);
      case GraphOperator::Identity: return x;
      case GraphOperator::Select: return at(step.t, place) != 0.0 ? x : b;
      default: throw std::logic_error("This is no operation on elements.");
    }
  }

  void multiply(const GraphStep& step, std::vector<double>& y) {
    const GraphExtents& left = tensor(step.x).dims;
    const GraphExtents& right = tensor(step.b).dims;
    const GraphExtents& dims = tensor(step.y).dims;
    if (left[3] != right[2] || dims[2] != left[2] || dims[3] != right[3] || dims[1] % right[1] != 0)
      throw std::logic_error("The factors of a product do not fit each other.");
    const std::vector<double>& a = values(step.x);
    const std::vector<double>& b = values(step.b);
    const std::int64_t share = dims[1] / right[1];
    forEachPlace(dims, [&](const Place& place, std::size_t i) {
      const std::int64_t row = ((place[0] * left[1] + place[1]) * left[2] + place[2]) * left[3];
      const std::int64_t column = (place[0] * right[1] + place[1] / share) * right[2] * right[3] + place[3];
      const bool counts =
          place[2] < lengthOf(step.rows, place[0], dims[2]) && place[3] < lengthOf(step.columns, place[0], dims[3]);
      if (!counts) y[i] = kUnknown;
      for (std::int64_t k = 0; k < lengthOf(step.inner, place[0], left[3]); ++k)
        y[i] += a[static_cast<std::size_t>(row + k)] * b[static_cast<std::size_t>(column + k * right[3])];
    });
  }

  void reduce(const GraphStep& step, std::vector<double>& y) {
    const GraphExtents& from = tensor(step.x).dims;
    const GraphExtents& to = tensor(step.y).dims;
    const bool isMax = step.operation == GraphOperator::Max;
    if (isMax) std::ranges::fill(y, -std::numeric_limits<double>::infinity());
    const std::vector<double>& x = values(step.x);
    forEachPlace(from, [&](Place place, std::size_t i) {
      for (std::size_t axis = 0; axis < place.size(); ++axis) place[axis] /= from[axis] / to[axis];
      double& result = y[static_cast<std::size_t>(offsetOf(place, {to[1] * to[2] * to[3], to[2] * to[3], to[3], 1}))];
      if (step.operation == GraphOperator::Sum)
        result += x[i];
      else
        result = std::max(result, isMax ? x[i] : std::fabs(x[i]));
    });
  }

  /// By the place that an element would have in memory.
  void reshape(const GraphStep& step, std::vector<double>& y) {
    const GraphTensor& from = tensor(step.x);
    const GraphTensor& to = tensor(step.y);
    std::map<std::int64_t, double> byOffset;
    const std::vector<double>& x = values(step.x);
    forEachPlace(from.dims, [&](const Place& place, std::size_t i) { byOffset[offsetOf(place, from.strides)] = x[i]; });
    forEachPlace(to.dims, [&](const Place& place, std::size_t i) { y[i] = byOffset.at(offsetOf(place, to.strides)); });
  }

  /// Beyond the lengths of sequences NVIDIA promises no values.
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  const cuda::TensorGraph& m_graph;
  std::span<std::byte* const> m_memory;
  std::vector<std::vector<double>> m_values;
};

class HostGraph final : public cuda::PreparedGraph {
 public:
  explicit HostGraph(cuda::TensorGraph graph) : m_graph(std::move(graph)) {}
  std::size_t workspaceBytes() const override { return kWorkspaceBytes; }
  void run(std::span<std::byte* const> tensors, std::byte* workspace) override {
    ++cuda::numLaunched;
    simt::submit(nullptr, [this, memory = std::vector(tensors.begin(), tensors.end()), workspace] {
      std::memset(workspace, 0xff, kWorkspaceBytes);
      runGraph(m_graph, memory);
    });
  }

 private:
  static constexpr std::size_t kWorkspaceBytes = 512;
  cuda::TensorGraph m_graph;
};

class HostGraphs final : public cuda::GraphLibrary {
 public:
  Result<std::unique_ptr<cuda::PreparedGraph>> prepare(const cuda::TensorGraph& graph) override {
    return std::unique_ptr<cuda::PreparedGraph>(std::make_unique<HostGraph>(graph));
  }
};

}  // namespace

void runGraph(const cuda::TensorGraph& graph, std::span<std::byte* const> tensors) { GraphRun(graph, tensors).run(); }

std::unique_ptr<cuda::GraphLibrary> makeHostGraphs() { return std::make_unique<HostGraphs>(); }

}  // namespace fuseline::testing
