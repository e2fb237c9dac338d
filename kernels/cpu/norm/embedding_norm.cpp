// Kernel "embedding_norm": Embedding, an optional MakeExtraOutput, and a norm that reads the rows of the table. The
// result equals that of the separate ops.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_steps.h"

namespace fuseline::cpu::kernels {

KernelDef embedding_norm();

KernelDef embedding_norm() {
  return {
      .name = "embedding_norm",
      .phases = {Phase::Forward},
      .compile = makeEmbeddingNormForward,
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu::kernels
