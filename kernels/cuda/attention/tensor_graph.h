// Graphs of operations on tensors, as a library takes them that runs a whole graph as one kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/stream/stream.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace fuseline::cuda {

enum class GraphElement : std::uint8_t { F32, F16, BF16, E4M3, I32, I64, Boolean };
GraphElement graphElement(DType dtype);

/// [batch, head, row, column] wherever attention is meant; strides in elements.
using GraphExtents = std::array<std::int64_t, 4>;

/// Virtual ones are never in memory. Scalars are [1, 1, 1, 1] and known on the host.
struct GraphTensor {
  GraphExtents dims = {1, 1, 1, 1};
  GraphExtents strides = {1, 1, 1, 1};
  GraphElement element = GraphElement::F32;
  bool isVirtual = false;
  std::optional<std::variant<float, std::int32_t>> scalar = std::nullopt;
  /// Tensor of where each batch entry begins, in elements, in place of its stride: I64 [batch + 1, 1, 1, 1]. -1: the
  /// stride counts.
  int offsets = -1;
};

enum class GraphOperator : std::uint8_t {
  Matmul,  // y = x b, by batch and head; heads of b may be shared by as many of x each
  Add,     // of x and b, as the next ones; extents of 1 are repeated
  Subtract,
  Multiply,
  Divide,
  GreaterOrEqual,
  Greater,
  Less,
  And,
  Exponential,
  Logarithm,
  Identity,
  Index,   // along an axis of x
  Select,  // x where t, else b
  Max,     // over extents that y has fewer of; of heads, neighbors
  Sum,
  LargestMagnitude,
  Reshape  // the same elements with other dims and strides
};

/// Indices of tensors; -1: there is none.
struct GraphStep {
  GraphOperator operation = GraphOperator::Identity;
  int x = -1;
  int b = -1;
  int t = -1;
  int y = -1;
  int axis = 0;
  GraphElement compute = GraphElement::F32;
  /// A product may count only a part of its extents in each batch entry: I32 tensors [batch, 1, 1, 1]. -1: all.
  int rows = -1, columns = -1, inner = -1;
};

struct TensorGraph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphStep> steps;
  std::size_t oldestVersion = 0;  // of the library: 91400 is 9.14.0; 0: that of any graph
};

/// A graph that was made ready once.
class PreparedGraph {
 public:
  virtual ~PreparedGraph() = default;
  virtual std::size_t workspaceBytes() const = 0;
  /// tensors: by index; nullptr for scalars and what is virtual. Asynchronous. Throws when the library refuses.
  virtual void run(std::span<std::byte* const> tensors, std::byte* workspace) = 0;
};

class GraphLibrary {
 public:
  virtual ~GraphLibrary() = default;
  /// Errors: the library is not there, is too old, or does not run this graph on this device; a sentence.
  virtual Result<std::unique_ptr<PreparedGraph>> prepare(const TensorGraph& graph) = 0;
};

}  // namespace fuseline::cuda
