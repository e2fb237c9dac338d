// A grouped MLP with a gated activation (TransformerEngine grouped_mlp.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"
#include "core/fusion/rules/grouped_mlp.h"

namespace fuseline::rules {

FusionRule grouped_mlp_glu() {
  constexpr double kTolerance = 1e-3;
  return groupedMlp(
      {
          .name = "GroupedMLP_CuTeGEMMGLU",
          .summary =
              "The first grouped GEMM activates, scales and quantizes what it makes, so that the second reads it at "
              "once; backward likewise. Other parameters of ScaledClampedQGeGLU than the usual ones, which "
              "TransformerEngine takes from cuDNN front-end 1.24 on, are refused.",
          // 32 is the block of MXFP8.
          .conditions = {attributeIs("act", "glu_interleave_size", 32),
                         attributeIsNear("act", "alpha", 1.702, kTolerance),
                         attributeIsNear("act", "glu_linear_offset", 1.0, kTolerance),
                         attributeIsNear("act", "limit", 7.0, kTolerance)},
      },
      {"ScaledSwiGLU", "ScaledClampedQGeGLU", "ScaledSiTUGLU"});
}

}  // namespace fuseline::rules
