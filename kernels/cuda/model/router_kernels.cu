// TopKRouter, a warp a token. Scores are computed in double precision, as on the host, so that every backend chooses
// the same experts. The next expert is the best one that comes after the last in the order of choices: nothing is
// marked. Tokens are counted by integer atomics, whose sums do not depend on the order.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/router_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ int lane() { return static_cast<int>(threadIdx.x); }

/// index -1: none.
struct Choice {
  double value = 0.0;
  int index = -1;

  __device__ bool isBefore(const Choice& other) const {
    return index >= 0 && (other.index < 0 || comesBefore(value, index, other.value, other.index));
  }
};

__device__ double sumOfWarp(double value) {
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

__device__ Choice bestOfWarp(Choice own) {
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2) {
    const Choice other{__shfl_xor_sync(kAllLanes, own.value, offset), __shfl_xor_sync(kAllLanes, own.index, offset)};
    if (other.isBefore(own)) own = other;
  }
  return own;
}

/// The best of values[first ... end) after `last` for which isAllowed(index).
template <class Allowed>
__device__ Choice nextAfter(const Choice& last, const double* values, int first, int end, const Allowed& isAllowed) {
  Choice best;
  for (int i = first + lane(); i < end; i += kWarpLanes) {
    const Choice own{values[i], i};
    if ((last.index < 0 || last.isBefore(own)) && own.isBefore(best) && isAllowed(i)) best = own;
  }
  return bestOfWarp(best);
}

/// exp(x - most) / sum
struct SoftmaxTerms {
  double most = 0.0;
  double sum = 1.0;
  __device__ double of(double x) const { return std::exp(x - most) / sum; }
};

/// valueAt(i): value i of `count`.
template <class Values>
__device__ SoftmaxTerms softmaxOver(int count, const Values& valueAt) {
  Choice most;
  for (int i = lane(); i < count; i += kWarpLanes) {
    const Choice own{valueAt(i), i};
    if (own.isBefore(most)) most = own;
  }
  SoftmaxTerms terms{bestOfWarp(most).value, 0.0};
  double sum = 0.0;
  for (int i = lane(); i < count; i += kWarpLanes) sum += std::exp(valueAt(i) - terms.most);
  terms.sum = sumOfWarp(sum);
  return terms;
}

/// The logits of the block's token and their scores.
struct Token {
  const RouterTask& task;
  std::int64_t number;
  SoftmaxTerms softmax = {};  // over all logits, where scores need it

  __device__ explicit Token(const RouterTask& t) : task(t), number(blockIdx.x) {
    if (task.score == RouterScore::Softmax && (task.choosesByScore || !task.isSoftmaxOfChosen))
      softmax = softmaxOver(task.experts, [&](int expert) { return logit(expert); });
  }
  __device__ double logit(int expert) const {
    return loadElement(task.element, task.logits, number * task.experts + expert);
  }
  __device__ double score(int expert) const {
    return task.score == RouterScore::Softmax ? softmax.of(logit(expert)) : scoreOfLogit(task.score, logit(expert));
  }
  __device__ std::int64_t slot(int i) const { return number * task.topk + i; }
};

/// Shared memory of a block: what decides, the scores of groups, and the chosen experts.
struct RouterSpace {
  double* choices;
  double* groups;
  int* chosen;

  __device__ RouterSpace(float* memory, const RouterTask& task)
      : choices(reinterpret_cast<double*>(memory)),
        groups(choices + task.experts),
        chosen(reinterpret_cast<int*>(groups + task.numGroups)) {}
};

/// The last of the groups whose experts may be chosen, in the order of groups.
__device__ Choice lastGroup(const RouterTask& task, const RouterSpace& space) {
  const int size = task.experts / task.numGroups;
  const auto any = [](int) { return true; };
  for (int group = 0; group < task.numGroups; ++group) {
    double sum = 0.0;
    Choice last;
    for (int i = 0; i < task.topk / task.groupTopk; ++i) {
      last = nextAfter(last, space.choices, group * size, (group + 1) * size, any);
      sum += last.value;
    }
    if (lane() == 0) space.groups[group] = sum;
  }
  __syncthreads();
  Choice last;
  for (int i = 0; i < task.groupTopk; ++i) last = nextAfter(last, space.groups, 0, task.numGroups, any);
  return last;
}

__device__ void chooseExperts(const Token& token, const RouterSpace& space) {
  const RouterTask& task = token.task;
  for (int expert = lane(); expert < task.experts; expert += kWarpLanes)
    space.choices[expert] = (task.choosesByScore ? token.score(expert) : token.logit(expert)) +
                            (task.bias ? static_cast<double>(task.bias[expert]) : 0.0);
  __syncthreads();
  const Choice limit = task.numGroups > 0 ? lastGroup(task, space) : Choice{};
  const int size = task.numGroups > 0 ? task.experts / task.numGroups : 1;
  const auto isAllowed = [&](int expert) {
    if (limit.index < 0) return true;
    const int group = expert / size;
    return group == limit.index || Choice{space.groups[group], group}.isBefore(limit);
  };
  Choice last;
  for (int i = 0; i < task.topk; ++i) {
    last = nextAfter(last, space.choices, 0, task.experts, isAllowed);
    if (lane() == 0) space.chosen[i] = last.index;
  }
  __syncthreads();
}

/// The probabilities of chosen experts before they are normalized and scaled. expertAt(i): the i-th chosen one.
template <class Experts>
struct ChosenValues {
  const Token& token;
  const Experts& expertAt;
  SoftmaxTerms softmax = {};

  __device__ ChosenValues(const Token& t, const Experts& experts) : token(t), expertAt(experts) {
    if (t.task.isSoftmaxOfChosen) softmax = softmaxOver(t.task.topk, [&](int i) { return token.logit(expertAt(i)); });
  }
  __device__ double at(int i) const {
    return token.task.isSoftmaxOfChosen ? softmax.of(token.logit(expertAt(i))) : token.score(expertAt(i));
  }
  /// The sum of term(i) over the chosen experts.
  template <class Term>
  __device__ double sum(const Term& term) const {
    double own = 0.0;
    for (int i = lane(); i < token.task.topk; i += kWarpLanes) own += term(i);
    return sumOfWarp(own);
  }
  __device__ double normalizer() const {
    if (token.task.isSoftmaxOfChosen || !token.task.normalizes) return 1.0;
    return sum([&](int i) { return at(i); }) + kRouterEpsilon;
  }
};

__global__ void __launch_bounds__(kWarpLanes) routeTokens(const __grid_constant__ RouterTask task) {
  FUSELINE_DYNAMIC_SHARED(memory);
  const RouterSpace space(memory, task);
  const Token token(task);
  chooseExperts(token, space);
  const auto expertAt = [&](int i) { return space.chosen[i]; };
  const ChosenValues values(token, expertAt);
  const double factor = task.scalingFactor / values.normalizer();
  for (int i = lane(); i < task.topk; i += kWarpLanes) {
    const int expert = expertAt(i);
    if (task.probs) storeElement(task.element, task.probs, token.slot(i), static_cast<float>(values.at(i) * factor));
    if (task.indices) task.indices[token.slot(i)] = expert;
    if (task.numTokens) atomicAdd(task.numTokens + expert, 1ull);
  }
}

/// The gradient of the logit of a chosen expert whose score is not the softmax of all. dot: the sum of values and
/// gradients of all chosen experts.
__device__ double chosenGradient(const Token& token, int expert, double value, double gradient, double dot,
                                 double normalizer) {
  const RouterTask& task = token.task;
  if (task.isSoftmaxOfChosen) return value * (gradient - dot);
  const double shared = task.normalizes ? dot / (normalizer * normalizer) : 0.0;
  return (gradient / normalizer - shared) * slopeOfScore(task.score, token.logit(expert), value);
}

__global__ void __launch_bounds__(kWarpLanes) routeGradients(const __grid_constant__ RouterTask task) {
  FUSELINE_DYNAMIC_SHARED(memory);
  double* const gradients = RouterSpace(memory, task).choices;
  const Token token(task);
  const auto expertAt = [&](int i) { return static_cast<int>(task.chosen[token.slot(i)]); };
  const ChosenValues values(token, expertAt);
  const auto gradientOf = [&](int i) {
    return task.scalingFactor * loadElement(task.element, task.dProbs, token.slot(i));
  };
  const double dot = values.sum([&](int i) { return values.at(i) * gradientOf(i); });
  const double normalizer = values.normalizer();
  const bool isOfAll = task.score == RouterScore::Softmax && !task.isSoftmaxOfChosen;
  for (int expert = lane(); expert < task.experts; expert += kWarpLanes)
    gradients[expert] = isOfAll ? -token.score(expert) * dot : 0.0;
  __syncthreads();
  for (int i = lane(); i < task.topk; i += kWarpLanes) {
    const int expert = expertAt(i);
    const double value = values.at(i);
    gradients[expert] +=
        isOfAll ? value * gradientOf(i) : chosenGradient(token, expert, value, gradientOf(i), dot, normalizer);
  }
  __syncthreads();
  for (int expert = lane(); expert < task.experts; expert += kWarpLanes)
    storeElement(task.element, task.dLogits, token.number * task.experts + expert,
                 static_cast<float>(gradients[expert]));
}

std::size_t sharedBytesOf(const RouterTask& task) { return routerSharedBytes(task.experts, task.numGroups, task.topk); }

}  // namespace

std::size_t routerSharedBytes(std::int64_t experts, std::int64_t numGroups, std::int64_t topk) {
  return static_cast<std::size_t>(experts + numGroups) * sizeof(double) + static_cast<std::size_t>(topk) * sizeof(int);
}

void launchRouter(const RouterTask& task, Stream stream) {
  if (task.tokens > 0)
    launch(routeTokens, dim3(static_cast<unsigned>(task.tokens)), dim3(kWarpLanes), sharedBytesOf(task), stream, task);
}

void launchRouterGradient(const RouterTask& task, Stream stream) {
  if (task.tokens > 0)
    launch(routeGradients, dim3(static_cast<unsigned>(task.tokens)), dim3(kWarpLanes), sharedBytesOf(task), stream,
           task);
}

}  // namespace fuseline::cuda
