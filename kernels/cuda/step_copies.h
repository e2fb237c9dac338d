// The quantized copies that a step makes, of its result or of what it reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/quantize_steps.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/kernel_def.h"

#include <vector>

namespace fuseline::cuda {

class StepCopies {
 public:
  /// The step has copies. Errors: several scalings, or one that the backend does not have.
  static Result<StepCopies> make(const CompileRequest& request);

  const OperandKey& source() const { return m_step->copies.front().source; }
  const TensorSpec& spec() const { return m_step->copies.front().spec; }
  device::CopyKind kind() const;

  /// For a kernel that makes them while it makes the result. Only as many readers as fitsKernel() says.
  bool fitsKernel() const { return m_operands.size() <= device::HandOver::kMaxPairs; }
  device::HandOver at(Pointers pointers) const;
  /// Makes them of the tensor in memory, by kernels of their own. amax: room for one float32, where neither a scale nor
  /// a history is among the operands.
  void launchFrom(const std::byte* tensor, Pointers pointers, float* amax, const DeviceContext& device) const;

 private:
  explicit StepCopies(const CompileRequest& request);
  device::CopyPair pairAt(std::size_t index, Pointers pointers) const;
  void launchTensor(const std::byte* tensor, const device::CopyPair& pair, float* amax,
                    const DeviceContext& device) const;
  device::CodedCopy copyOf(const std::optional<QuantizerSpec>& quantizer, int index, Pointers pointers) const;

  const Plan* m_plan;
  const Step* m_step;
  std::vector<QuantizeOperands> m_operands;  // by copies of the step
};

/// Whether kernels of elementwise programs can make these copies; no names what is in the way.
Verdict canMakeCopies(const KernelQuery& query);

}  // namespace fuseline::cuda
