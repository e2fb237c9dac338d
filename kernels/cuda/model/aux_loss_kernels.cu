// MoEAuxLoss, a warp a token, in double precision as on the host. A block adds the sums of its warps, and one block
// those of all, in an order that depends on the shape alone: the same bits in every run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/aux_loss_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokensPerBlock = kBlockThreads / kWarpLanes;

__device__ int lane() { return static_cast<int>(threadIdx.x); }

template <class Combine>
__device__ double overWarp(double value, const Combine& combine) {
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

__device__ double sumOverWarp(double value) {
  return overWarp(value, [](double a, double b) { return a + b; });
}

/// The scores of the warp's token over all experts.
struct TokenTerms {
  const AuxLossTask& task;
  std::int64_t token;
  double most;
  double sum = 0.0;       // of exp(logit - most)
  double valueSum = 0.0;  // of the values of other score functions

  __device__ TokenTerms(const AuxLossTask& t, std::int64_t number) : task(t), token(number), most(logit(0)) {
    forExperts([&](int expert) { most = logit(expert) > most ? logit(expert) : most; });
    most = overWarp(most, [](double a, double b) { return a > b ? a : b; });
    forExperts([&](int expert) {
      sum += std::exp(logit(expert) - most);
      if (!isSoftmax()) valueSum += scoreOfLogit(task.score, logit(expert));
    });
    sum = sumOverWarp(sum);
    valueSum = isSoftmax() ? 0.0 : sumOverWarp(valueSum) + kRouterEpsilon;
  }

  template <class Function>
  __device__ void forExperts(const Function& f) const {
    for (int expert = lane(); expert < task.experts; expert += kWarpLanes) f(expert);
  }
  __device__ bool isSoftmax() const { return task.score == RouterScore::Softmax; }
  __device__ double logit(int expert) const {
    return loadElement(task.element, task.logits, token * task.experts + expert);
  }
  __device__ double softmax(int expert) const { return std::exp(logit(expert) - most) / sum; }
  __device__ double score(int expert) const {
    return isSoftmax() ? softmax(expert) : scoreOfLogit(task.score, logit(expert)) / valueSum;
  }
  /// The derivative of the score by the logit, while the sum of scores stays.
  __device__ double slope(int expert) const {
    if (isSoftmax()) return softmax(expert);
    return slopeOfScore(task.score, logit(expert), scoreOfLogit(task.score, logit(expert))) / valueSum;
  }
  __device__ double logSumExp() const { return most + std::log(sum); }
  /// The sum of the scores times the experts' tokens.
  __device__ double dot() const {
    double own = 0.0;
    forExperts([&](int expert) { own += task.load[expert] * score(expert); });
    return sumOverWarp(own);
  }
};

__device__ std::int64_t tokenOfWarp() { return static_cast<std::int64_t>(blockIdx.x) * kTokensPerBlock + threadIdx.y; }

__global__ void __launch_bounds__(kBlockThreads)
    addLoad(const std::int64_t* tokensPerExpert, double* load, int experts, bool isFirst) {
  for (int expert = static_cast<int>(threadIdx.x); expert < experts; expert += kBlockThreads)
    load[expert] = (isFirst ? 0.0 : load[expert]) + static_cast<double>(tokensPerExpert[expert]);
}

/// blockDim: (kWarpLanes, kTokensPerBlock)
__global__ void __launch_bounds__(kBlockThreads) sumTokens(const __grid_constant__ AuxLossTask task) {
  __shared__ double sums[kTokensPerBlock];
  const std::int64_t token = tokenOfWarp();
  double own = 0.0;
  if (token < task.tokens) {
    const TokenTerms terms(task, token);
    const double lse = terms.logSumExp();
    own = task.loadFactor * terms.dot() + task.zFactor * lse * lse;
  }
  if (lane() == 0) sums[threadIdx.y] = own;
  __syncthreads();
  if (lane() != 0 || threadIdx.y != 0) return;
  double sum = 0.0;
  for (int warp = 0; warp < kTokensPerBlock; ++warp) sum += sums[warp];
  task.sums[blockIdx.x] = sum;
}

/// One warp.
__global__ void __launch_bounds__(kWarpLanes) sumBlocks(const double* sums, std::int64_t count, float* loss) {
  double own = 0.0;
  for (std::int64_t i = lane(); i < count; i += kWarpLanes) own += sums[i];
  own = sumOverWarp(own);
  if (lane() == 0) *loss = static_cast<float>(own);
}

/// blockDim: (kWarpLanes, kTokensPerBlock)
__global__ void __launch_bounds__(kBlockThreads) gradientsOfTokens(const __grid_constant__ AuxLossTask task) {
  const std::int64_t token = tokenOfWarp();
  if (token >= task.tokens) return;
  const double dLoss = *task.dLoss;
  const TokenTerms terms(task, token);
  const double dot = terms.dot();
  const double ofSquares = 2.0 * task.zFactor * terms.logSumExp();
  terms.forExperts([&](int expert) {
    const double ofLoad = task.loadFactor * (task.load[expert] - dot) * terms.slope(expert);
    storeElement(task.element, task.dLogits, token * task.experts + expert,
                 static_cast<float>(dLoss * (ofLoad + ofSquares * terms.softmax(expert))));
  });
}

dim3 blocksFor(std::int64_t tokens) { return dim3(static_cast<unsigned>(auxLossBlocks(tokens))); }

}  // namespace

std::int64_t auxLossBlocks(std::int64_t tokens) { return (tokens + kTokensPerBlock - 1) / kTokensPerBlock; }

void launchAddedLoad(const std::int64_t* tokensPerExpert, double* load, int experts, bool isFirst, Stream stream) {
  launch(addLoad, dim3(1), dim3(kBlockThreads), 0, stream, tokensPerExpert, load, experts, isFirst);
}

void launchAuxLoss(const AuxLossTask& task, Stream stream) {
  if (task.tokens > 0) launch(sumTokens, blocksFor(task.tokens), dim3(kWarpLanes, kTokensPerBlock), 0, stream, task);
}

void launchAuxLossSum(const double* sums, std::int64_t count, float* loss, Stream stream) {
  launch(sumBlocks, dim3(1), dim3(kWarpLanes), 0, stream, sums, count, loss);
}

void launchAuxLossGradient(const AuxLossTask& task, Stream stream) {
  if (task.tokens > 0)
    launch(gradientsOfTokens, blocksFor(task.tokens), dim3(kWarpLanes, kTokensPerBlock), 0, stream, task);
}

}  // namespace fuseline::cuda
