// Steps of norms: RMSNorm, LayerNorm, L2Normalization and their fusions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/embedding_form.h"
#include "core/runtime/step_operand.h"
#include "kernels/common/norm_kind.h"

#include <cstdint>

namespace fuseline {

/// A norm apart from its tensors. It normalizes `rows` rows of `cols` elements of dtype x: the trailing axes that its
/// weight has, or without a weight the last axis.
struct NormGeometry {
  NormKind kind = NormKind::Rms;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType x = DType::F32;
  DType parameter = DType::F32;
  float eps = 1e-5F;
  bool isGammaZeroCentred = false;
};

/// gamma and beta are absent without a weight, mean except in LayerNorm; rstd is the factor of every row.
struct NormForwardStep {
  NormGeometry norm;
  Binding x;            // or the first addend of the sum that is normalized
  Binding addend, sum;  // absent: nothing is added; the sum, or the rows looked up, are not requested
  Binding ids;          // absent: the rows of x are in order
  EmbeddingForm table;  // of the ids, whose table is x
  Binding gamma, beta, y, mean, rstd;
};

/// norm: a member of the step. Errors: those of requireOperand().
Result<NormForwardStep> readNormForward(const StepRequest& request, int norm);
/// For Embedding (member 0), an optional MakeExtraOutput and a norm (the last member).
Result<NormForwardStep> readEmbeddingNormForward(const StepRequest& request);
/// For AddExtraInput (member 0), an optional MakeExtraOutput and a norm (the last member).
Result<NormForwardStep> readAddNormForward(const StepRequest& request);

/// Keys of a norm's input gradient and of its addend. The extra gradient may be absent.
struct NormGradientKeys {
  OperandKey gradInput;
  OperandKey extraGradient;
};

/// For a norm that is the only member.
NormGradientKeys ownNormGradients();
/// For MakeExtraOutput (member 0) and a norm (member 1): the gradient of the output that the norm does not read is
/// added.
NormGradientKeys branchedNormGradients(const StepRequest& request);

struct NormBackwardStep {
  NormGeometry norm;
  Binding x, gradOutput, extra, gamma, mean, rstd, gradInput, gradGamma, gradBeta;
};

/// Errors: those of requireOperand().
Result<NormBackwardStep> readNormBackward(const StepRequest& request, int norm, const NormGradientKeys& keys);

/// A norm over several axes, whose rows differ from those of the tensor that is to be quantized; nullptr: there is
/// none. query: with copies.
const Node* normOfSeveralAxes(const KernelQuery& query);

}  // namespace fuseline
