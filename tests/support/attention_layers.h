// Attention with the ops around it, as layers of real models have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "tests/support/pipelines.h"

#include <string>
#include <vector>

namespace fuseline::testing {

struct AttentionLayer {
  std::string name;
  std::vector<Link> links;  // of an input [tokens, 2, 16], sbhd
};

/// linear, split, rotary embeddings, attention.
AttentionLayer llamaAttention();
/// linear, split, norms of each head, rotary embeddings, attention.
AttentionLayer qwen3Attention();
/// linear, bias, split, attention.
AttentionLayer gpt2Attention();

/// Multi-head latent attention: heads of queries and keys have rotated channels after the others, and all heads share
/// the rotated channels of keys.
AttentionLayer latentAttention();

/// Linears that read the parts of a split, and linears whose results are concatenated.
AttentionLayer splitLinears();
AttentionLayer joinedLinears();
/// Three linears, one with a bias, that read the result of a norm.
AttentionLayer linearsOfOneInput();
/// Norms that read the parts of a split.
AttentionLayer splitNorms();

/// Kernels of the launched steps of one pass: "BasicLinear norm_rotary norm_rotary DotProductAttention".
std::string launchedKernels(const Plan& plan, Phase phase);
/// Bytes that the launched steps with this kernel read and write.
std::int64_t bytesOf(const Plan& plan, Phase phase, const std::string& kernel);

}  // namespace fuseline::testing
