// Launches of TopKRouter. Plain C++: the kernels are in router_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/routing.h"
#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// logits: [tokens, experts]. The fields of a RouterForm, and what they imply.
struct RouterTask {
  const void* logits = nullptr;
  device::Element element = device::Element::F32;  // of logits, probs and their gradients
  std::int64_t tokens = 0;
  int experts = 0;
  int topk = 1;
  int numGroups = 0;  // 0: no groups
  int groupTopk = 0;
  RouterScore score = RouterScore::Softmax;
  bool isSoftmaxOfChosen = false;
  bool choosesByScore = false;
  bool normalizes = false;
  double scalingFactor = 1.0;

  const float* bias = nullptr;              // [experts]; null: none
  void* probs = nullptr;                    // [tokens, topk]; null: not wanted
  std::int64_t* indices = nullptr;          // [tokens, topk]; null: not wanted
  unsigned long long* numTokens = nullptr;  // [experts], that is added to; null: not wanted

  const std::int64_t* chosen = nullptr;  // of backward: indices
  const void* dProbs = nullptr;
  void* dLogits = nullptr;
};

/// Shared memory of a block, in bytes.
std::size_t routerSharedBytes(std::int64_t experts, std::int64_t numGroups, std::int64_t topk);
/// numTokens must be 0 before.
void launchRouter(const RouterTask& task, Stream stream);
void launchRouterGradient(const RouterTask& task, Stream stream);

}  // namespace fuseline::cuda
