// Fills tensors from random streams, strip by strip and on all cores.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/random_tensor.h"

#include "core/numerics/random.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

// Elements that are made in double precision at a time; a strip stays in the L2 cache.
constexpr std::int64_t kStrip = 1 << 14;

/// Puts the values from `first` on into `out`.
using Fill = std::function<void(std::uint64_t first, std::span<double> out)>;

void fillStrip(Tensor& tensor, std::int64_t strip, const Fill& fill) {
  const std::int64_t first = strip * kStrip;
  std::vector<double> values(static_cast<std::size_t>(std::min(kStrip, tensor.spec.numElements() - first)));
  fill(static_cast<std::uint64_t>(first), values);
  encode(values, tensor.spec.dtype, tensor.data.data() + first * sizeBytes(tensor.spec.dtype));
}

Tensor filledWith(TensorSpec spec, const Fill& fill) {
  Tensor tensor = Tensor::zeros(std::move(spec));
  const std::int64_t numStrips = (tensor.spec.numElements() + kStrip - 1) / kStrip;
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t strip = next++; strip < numStrips; strip = next++) fillStrip(tensor, strip, fill);
  };
  std::vector<std::jthread> helpers;
  const std::int64_t numThreads = std::min<std::int64_t>(std::thread::hardware_concurrency(), numStrips);
  for (std::int64_t thread = 1; thread < numThreads; ++thread) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins them
  return tensor;
}

}  // namespace

Tensor randomNormal(TensorSpec spec, std::uint64_t seed, std::string_view name) {
  const RandomStream stream(seed, name);
  return filledWith(std::move(spec), [&](std::uint64_t first, std::span<double> out) { stream.normals(first, out); });
}

Tensor randomUniform(TensorSpec spec, double bound, std::uint64_t seed, std::string_view name) {
  const RandomStream stream(seed, name);
  return filledWith(std::move(spec), [&](std::uint64_t first, std::span<double> out) {
    stream.uniforms(first, out);
    for (double& value : out) value = bound * (2.0 * value - 1.0);
  });
}

Tensor filled(TensorSpec spec, double value) {
  return filledWith(std::move(spec), [&](std::uint64_t, std::span<double> out) { std::ranges::fill(out, value); });
}

}  // namespace fuseline
