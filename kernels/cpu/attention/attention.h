// Attention over whole tensors: threads over heads and query tiles, tiles of keys that the mask leaves out skipped,
// memory linear in the number of tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/attention_step.h"
#include "kernels/cpu/attention/rotary_angles.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fuseline::cpu {

struct AttentionProblem : fuseline::AttentionProblem {
  int threads = 1;
  bool multipliesBf16 = false;  // GEMM operands are rounded to bf16
  /// Set: q and k are rotated as they are read, and their gradients back as they are written.
  std::shared_ptr<const HeadRotation> rotationOfQ;
  std::shared_ptr<const HeadRotation> rotationOfK;
};

/// Inputs of forward and backward.
struct AttentionInputs {
  const std::byte* q = nullptr;
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  const std::byte* bias = nullptr;
  const std::int64_t* mask = nullptr;
  const std::int64_t* cuSeqlensQ = nullptr;
  const std::int64_t* cuSeqlensKv = nullptr;
  const float* offset = nullptr;  // softmax_offset
};

struct AttentionForwardPointers {
  AttentionInputs inputs;
  std::byte* y = nullptr;
  float* lse = nullptr;  // null: not wanted
};

/// Gradients that are null are not wanted.
struct AttentionBackwardPointers {
  AttentionInputs inputs;
  const std::byte* y = nullptr;
  const std::byte* dy = nullptr;
  const float* lse = nullptr;
  std::byte* dq = nullptr;
  std::byte* dk = nullptr;
  std::byte* dv = nullptr;
  std::byte* dbias = nullptr;
  float* doffset = nullptr;
};

/// Both throw std::runtime_error where sums of sequence lengths are not legal: they are known at run time only.
std::size_t attentionForwardWorkspaceBytes(const AttentionProblem& problem);
void attentionForward(const AttentionProblem& problem, const AttentionForwardPointers& pointers, std::byte* workspace);

/// The gradient of q is a sum over keys whose order depends on the number of threads, but not on their timing.
std::size_t attentionBackwardWorkspaceBytes(const AttentionProblem& problem);
void attentionBackward(const AttentionProblem& problem, const AttentionBackwardPointers& pointers,
                       std::byte* workspace);

}  // namespace fuseline::cpu
