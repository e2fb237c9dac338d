// GroupCopies: a step writes the quantized tensors of each group of its result's rows while the rows are made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"

#include <cstdint>
#include <functional>

namespace fuseline::cpu {

/// The same bits as kernel "quantize" writes. All works of the step are of one result, which is divided by one tensor.
class GroupCopies {
 public:
  explicit GroupCopies(const CompileRequest& request);

  /// A step without fused quantization.
  bool isEmpty() const { return m_step.copies.empty(); }
  /// For a result that is not stored.
  std::size_t scratchBytes() const;

  /// Writes rows [first, first + count) of the result to `to`, on the calling thread.
  using MakeRows = std::function<void(std::int64_t first, std::int64_t count, std::byte* to)>;
  /// result: null if it is not stored; scratch: scratchBytes() then. Throws if the sizes of the groups do not fit.
  void run(Pointers pointers, std::byte* result, std::byte* scratch, const MakeRows& make) const;

 private:
  struct Group;
  std::vector<Group> openGroups(Pointers pointers) const;
  void open(const QuantizePiece& piece, const TensorQuantizers& quantizers, Group& group) const;
  std::int64_t rowBytes() const;

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
  int m_threads;
  std::int64_t m_blockRows = 1;
};

}  // namespace fuseline::cpu
