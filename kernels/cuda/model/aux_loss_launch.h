// Launches of MoEAuxLoss. Plain C++: the kernels are in aux_loss_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/routing.h"
#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// One layer. logits: [tokens, experts].
struct AuxLossTask {
  const void* logits = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t tokens = 0;
  int experts = 0;
  RouterScore score = RouterScore::Softmax;
  double loadFactor = 0.0;
  double zFactor = 0.0;
  const double* load = nullptr;  // [experts], tokens of each expert in all layers

  double* sums = nullptr;  // of forward: [auxLossBlocks(tokens)]

  const float* dLoss = nullptr;  // of backward
  void* dLogits = nullptr;
};

/// Blocks of the forward launch of one layer.
std::int64_t auxLossBlocks(std::int64_t tokens);

/// load: [experts]; the first layer replaces what is there.
void launchAddedLoad(const std::int64_t* tokensPerExpert, double* load, int experts, bool isFirst, Stream stream);
void launchAuxLoss(const AuxLossTask& task, Stream stream);
/// loss = the sum of all sums, in a fixed order.
void launchAuxLossSum(const double* sums, std::int64_t count, float* loss, Stream stream);
void launchAuxLossGradient(const AuxLossTask& task, Stream stream);

}  // namespace fuseline::cuda
