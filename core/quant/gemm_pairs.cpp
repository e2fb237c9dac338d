// The pairs that cuBLASLt and TransformerEngine 2.20.2 take.
// Source: common/gemm/cublaslt_gemm.cu, pytorch/tensor/hybrid_tensor.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/gemm_pairs.h"

#include "core/tensor/scaling.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Scalings with scales that a GEMM reads in the same way.
enum class ScaleKind : std::uint8_t { Tensor, BlocksOf128, Mx, Nv };

ScaleKind kindOf(Scaling scaling) {
  if (scaling == Scaling::PerTensor) return ScaleKind::Tensor;
  if (isOfBlocksOf128(scaling)) return ScaleKind::BlocksOf128;
  return isNvfp4(scaling) ? ScaleKind::Nv : ScaleKind::Mx;
}

std::string textOf(const GemmFactor& factor) {
  return fmt::format("{} in {}", roleName(factor.tensor),
                     factor.quantizer ? traitsOf(factor.quantizer->scaling).name : "high precision");
}

std::string pairText(GemmRole gemm, const GemmFactor& a, const GemmFactor& b) {
  return fmt::format("{} would multiply the {} by the {}", roleName(gemm), textOf(a), textOf(b));
}

}  // namespace

Verdict canMultiply(GemmRole gemm, const GemmFactor& a, const GemmFactor& b, bool isStrict) {
  const auto& [typeA, left] = a;
  const auto& [typeB, right] = b;
  if (left && right && left->format == ElementFormat::E5M2 && right->format == ElementFormat::E5M2)
    return Verdict::no(
        fmt::format("both operands of {} would be e5m2, which no GEMM supports. Set one to e4m3.", roleName(gemm)));
  if (left && right && kindOf(left->scaling) != kindOf(right->scaling))
    return Verdict::no(
        fmt::format("{}. TransformerEngine's GEMM raises, because one GEMM cannot apply two kinds of scales. Use the "
                    "same scaling for both.",
                    pairText(gemm, a, b)));
  if (left && right && left->scaling == Scaling::Block128x128 && right->scaling == Scaling::Block128x128)
    return Verdict::no(
        fmt::format("{}, but only one operand of a GEMM may have blocks of 128 x 128; TransformerEngine raises. Use "
                    "blocks of 1 x 128 for one.",
                    pairText(gemm, a, b)));
  if (isStrict && left.has_value() != right.has_value())
    return Verdict::no(
        fmt::format("{}. TransformerEngine's GEMM raises, because either both operands or none must be quantized. "
                    "Quantize both, or neither.",
                    pairText(gemm, a, b)));
  const bool isWgrad = gemm == GemmRole::Wgrad;
  if (isStrict && isWgrad && left && right && left->transformsColumnwise != right->transformsColumnwise)
    return Verdict::no(
        "only one operand of wgrad would have the random Hadamard transform, so TransformerEngine's result would be "
        "wrong. Set disable_rht to the same value for both.");
  return Verdict::yes();
}

Verdict isDelayedWhole(TensorType tensor,
                       const std::function<std::optional<QuantizerSpec>(OperandRole)>& quantizerFor) {
  std::vector<bool> isDelayed;
  for (const OperandRole role : operandRoles())
    if (const auto spec = role.tensor == tensor ? quantizerFor(role) : std::nullopt)
      isDelayed.push_back(spec->isDelayed);
    else if (role.tensor == tensor)
      isDelayed.push_back(false);
  if (std::ranges::count(isDelayed, isDelayed.front()) == std::ssize(isDelayed)) return Verdict::yes();
  return Verdict::no(
      fmt::format("only one of the rowwise and columnwise {} uses DelayedScaling, for which TransformerEngine's "
                  "HybridQuantizer raises. Use it for both, or for neither.",
                  roleName(tensor)));
}

}  // namespace fuseline
