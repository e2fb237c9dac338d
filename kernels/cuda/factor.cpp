// Brings scales into cuBLASLt's layout, and decodes what it does not multiply.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/factor.h"

#include "core/quant/scale_layout.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/coded_copy.h"
#include "kernels/cuda/scale_launch.h"
#include "kernels/cuda/workspace.h"

#include <utility>

namespace fuseline::cuda {

bool needsDecoding(const GemmProblem& problem) {
  if (problem.aCodes.has_value() != problem.bCodes.has_value()) return true;
  return problem.aCodes && problem.aCodes->format == ElementFormat::E5M2 &&
         problem.bCodes->format == ElementFormat::E5M2;
}

GemmProblem decoded(GemmProblem problem) {
  problem.aCodes = problem.bCodes = std::nullopt;
  problem.isFastAccumulated = false;
  return problem;
}

Factor::Factor(TensorSpec spec, bool isDecoded) : m_spec(std::move(spec)) {
  const auto& form = m_spec.quantized;
  m_isDecoded = form && isDecoded;
  if (!form || isDecoded || form->scaling == Scaling::PerTensor) return;
  m_map = scaleMapOf(m_spec, form->scaling, form->direction);
  m_scaleBytes = traitsOf(form->scaling).scaleFormat == ScaleFormat::F32 ? sizeof(float) : 1;
}

std::size_t Factor::workspaceBytes() const {
  if (m_isDecoded) return workspacePart(static_cast<std::size_t>(m_spec.numElements() * sizeBytes(m_spec.dtype)));
  if (!m_map) return 0;
  return workspacePart(static_cast<std::size_t>(m_map->paddedOuter() * m_map->paddedInner()) * m_scaleBytes);
}

Factor::Memory Factor::prepare(const std::byte* data, std::byte* workspace, Stream stream) const {
  if (!data || !m_spec.quantized) return {data, nullptr};
  if (m_isDecoded) {
    launchDecode(m_spec, data, workspace, stream);
    return {workspace, nullptr};
  }
  const std::byte* const scales = data + partsOf(m_spec).scalesOffset;
  if (!m_map) return {data, scales};
  launchArrangeScales({.from = scales, .to = workspace, .scaleBytes = static_cast<int>(m_scaleBytes), .map = *m_map},
                      stream);
  return {data, workspace};
}

}  // namespace fuseline::cuda
