// The quantized copies that a step makes of its result besides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/quantize_steps.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/kernel_def.h"

#include <vector>

namespace fuseline::cuda {

class ResultCopies {
 public:
  /// The step has copies. Errors: they have several scalings.
  static Result<ResultCopies> make(const CompileRequest& request);

  const OperandKey& source() const { return m_step->copies.front().source; }
  const TensorSpec& spec() const { return m_step->copies.front().spec; }
  device::CopyKind kind() const;

  /// For a kernel that makes them while it makes the result. Only as many readers as fitsKernel() says.
  bool fitsKernel() const { return m_operands.size() <= device::HandOver::kMaxPairs; }
  device::HandOver at(Pointers pointers) const;
  /// Makes them of the result in memory, by kernels of their own.
  void launchFrom(const std::byte* result, Pointers pointers, const DeviceContext& device) const;

 private:
  explicit ResultCopies(const CompileRequest& request);
  device::CopyPair pairAt(std::size_t index, Pointers pointers) const;
  void launchTensor(const std::byte* result, const device::CopyPair& pair, const DeviceContext& device) const;
  device::CodedCopy copyOf(const std::optional<QuantizerSpec>& quantizer, int index, Pointers pointers) const;

  const Plan* m_plan;
  const Step* m_step;
  std::vector<QuantizeOperands> m_operands;  // by copies of the step
};

/// Whether kernels of elementwise programs can make these copies; no names what is in the way.
Verdict canMakeResultCopies(const KernelQuery& query);
/// The scaling of both copies, where they have one.
Verdict haveOneScaling(const TensorQuantizers& quantizers);

}  // namespace fuseline::cuda
