// The result of a linear op's GEMM, quantized for the one GEMM that reads it, with a scale that is known beforehand.
// Source: TransformerEngine's BasicLinear with an output or grad_input quantizer, which DelayedScaling alone has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/step_copies.h"

#include <cstddef>
#include <string>

namespace fuseline::cuda {

/// Whether the GEMM of a linear op, with or without a bias, can quantize its result: another linear op alone reads it,
/// quantized by a scale that is known beforehand. no names the obstacle.
Verdict canQuantizeResult(const KernelQuery& query);

/// cuBLASLt writes the rowwise quantized tensor, and a transposition the columnwise one. Where it refuses, or where the
/// plain result is stored, too, the GEMM's rounded result is quantized.
class QuantizedResult {
 public:
  /// solved: the GEMM's problem, which is quantizing or not. isStored: the plain result has memory in the plan.
  QuantizedResult(StepCopies copies, const GemmProblem& solved, bool isStored, const DeviceContext& device);

  std::size_t workspaceBytes() const { return m_workspaceBytes; }
  /// Sets where the GEMM writes. workspace: of the requested size.
  void place(GemmPointers& memory, Pointers pointers, std::byte* workspace) const;
  /// After the GEMM. memory: as place() left it.
  void finish(const GemmPointers& memory, Pointers pointers) const;
  /// Kernel::ways.
  std::string way() const;

 private:
  StepCopies m_copies;
  const DeviceContext* m_device;
  bool m_isByLibrary;
  bool m_isStored;
  std::size_t m_workspaceBytes = 0;
  std::size_t m_amaxOffset = 0;  // in the workspace: of a piece; the library does not raise an amax but sets it
};

}  // namespace fuseline::cuda
