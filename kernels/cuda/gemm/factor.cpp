// Converts scales to cuBLASLt's layout, and dequantizes factors that it does not multiply.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/factor.h"

#include "core/quant/scale_layout.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/quantize/coded_copy.h"
#include "kernels/cuda/quantize/nvfp4_launch.h"
#include "kernels/cuda/quantize/scale_launch.h"
#include "kernels/cuda/support/workspace.h"

#include <utility>

namespace fuseline::cuda {

namespace {

constexpr ComputeCapability kBlackwell = {10, 0};

bool hasOddRows(const GemmProblem& problem) {
  return problem.aCodes->format == ElementFormat::E2M1 && problem.k % kFp4RowMultiple != 0;
}

bool needsDecoding(const GemmProblem& problem) {
  if (problem.aCodes.has_value() != problem.bCodes.has_value()) return true;
  if (!problem.aCodes) return false;
  const bool areE5m2 = problem.aCodes->format == ElementFormat::E5M2 && problem.bCodes->format == ElementFormat::E5M2;
  return areE5m2 || problem.aCodes->isTransformed != problem.bCodes->isTransformed || hasOddRows(problem);
}

bool hasBlocksOf128(const GemmProblem& problem) { return problem.aCodes && isOfBlocksOf128(problem.aCodes->scaling); }

/// Does the last block of a row hold whole blocks of MXFP8?
bool hasWholeMxBlocks(const GemmProblem& problem) {
  return problem.k % traitsOf(Scaling::Mx1x32).contractedMultiple == 0;
}

}  // namespace

FactorWay factorWayOf(const GemmProblem& problem, ComputeCapability gpu) {
  if (needsDecoding(problem)) return FactorWay::Decoded;
  if (!hasBlocksOf128(problem) || gpu < kBlackwell) return FactorWay::AsTheyAre;
  return hasWholeMxBlocks(problem) ? FactorWay::AsMxfp8 : FactorWay::Decoded;
}

GemmProblem inWay(GemmProblem problem, FactorWay way) {
  if (way == FactorWay::AsMxfp8) problem.aCodes->scaling = problem.bCodes->scaling = Scaling::Mx1x32;
  if (way != FactorWay::Decoded) return problem;
  problem.aCodes = problem.bCodes = std::nullopt;
  problem.isFastAccumulated = false;
  return problem;
}

std::string describe(FactorWay way) {
  switch (way) {
    case FactorWay::AsTheyAre: break;
    case FactorWay::Decoded:
      return "quantized values are decoded before the GEMM, because cuBLASLt does not support them";
    case FactorWay::AsMxfp8: return "blocks of 128 are multiplied as MXFP8 blocks, because this GPU has no others";
  }
  return {};
}

Factor::Factor(TensorSpec spec, FactorWay way) : m_spec(std::move(spec)), m_way(way) {
  const auto& form = m_spec.quantized;
  if (!form || isDecoded() || form->scaling == Scaling::PerTensor) return;
  const bool isStoredAsRead = isOfBlocksOf128(form->scaling) && way == FactorWay::AsTheyAre && !form->window;
  if (isStoredAsRead) return;
  const auto mapOf = way == FactorWay::AsMxfp8 ? mxScaleMapOf : scaleMapOf;
  m_map = mapOf(m_spec, form->scaling, form->direction);
  m_scaleBytes = traitsOf(form->scaling).scaleFormat == ScaleFormat::F32 ? sizeof(float) : 1;
}

std::size_t Factor::workspaceBytes() const {
  if (isDecoded()) return workspacePart(static_cast<std::size_t>(m_spec.numElements() * sizeBytes(m_spec.dtype)));
  if (!m_map) return 0;
  return workspacePart(static_cast<std::size_t>(m_map->paddedOuter() * m_map->paddedInner()) * m_scaleBytes);
}

Factor::Memory Factor::prepare(const std::byte* data, std::byte* workspace, Stream stream) const {
  if (!data || !m_spec.quantized) return {.data = data};
  if (isDecoded()) {
    launchDecode(m_spec, data, workspace, stream);
    return {.data = workspace};
  }
  const CopyParts parts = partsOf(m_spec);
  const std::byte* const scales = data + parts.scalesOffset;
  if (!m_map) return {.data = data, .scales = scales};
  const ScalePlaces places = scalePlacesOf(m_spec, m_spec.quantized->scaling, m_spec.quantized->direction);
  launchArrangeScales({.from = scales,
                       .to = workspace,
                       .scaleBytes = static_cast<int>(m_scaleBytes),
                       .map = *m_map,
                       .rowStride = places.rowStride,
                       .colStride = places.colStride},
                      stream);
  const bool hasAmax = isNvfp4(m_spec.quantized->scaling);
  return {.data = data,
          .scales = workspace,
          .amax = hasAmax ? reinterpret_cast<const float*>(data + parts.amaxOffset) : nullptr};
}

FactorPair::FactorPair(TensorSpec a, TensorSpec b, FactorWay way, const GemmProblem& problem)
    : m_a(std::move(a), way),
      m_b(std::move(b), way),
      m_isScaledOnDevice(isScaledOnDevice(problem)),
      m_hasAddend(problem.hasAddend),
      m_alpha(problem.alpha) {}

std::size_t FactorPair::workspaceBytes() const {
  return m_a.workspaceBytes() + m_b.workspaceBytes() + (m_isScaledOnDevice ? workspacePart(2 * sizeof(float)) : 0);
}

void FactorPair::prepare(GemmPointers& pointers, std::byte* workspace, Stream stream) const {
  std::byte* const bMemory = workspace + m_a.workspaceBytes();
  const Factor::Memory a = m_a.prepare(pointers.a, workspace, stream);
  const Factor::Memory b = m_b.prepare(pointers.b, bMemory, stream);
  pointers.a = a.data;
  pointers.aScales = a.scales;
  pointers.b = b.data;
  pointers.bScales = b.scales;
  if (!m_isScaledOnDevice || !a.amax || !b.amax) return;
  std::byte* const factors = bMemory + m_b.workspaceBytes();
  launchNvfp4Factors({.aAmax = a.amax,
                      .bAmax = b.amax,
                      .alpha = m_alpha,
                      .hasAddend = m_hasAddend,
                      .to = reinterpret_cast<float*>(factors)},
                     stream);
  pointers.factors = factors;
}

}  // namespace fuseline::cuda
