// Kernel "TopKRouter": a token a thread, in double precision; the experts' tokens are counted from the indices.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"
#include "kernels/common/moe_step.h"
#include "kernels/cpu/kernel_def.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef top_k_router();

namespace {
namespace top_k_router_parts {

/// Logits that are worth waking a thread for.
constexpr std::int64_t kLogitsPerThread = 2048;

/// The step, and the threads for it.
struct RouterParts : RouterStep {
  int threads = 1;

  std::int64_t tokens() const { return x.spec.rows(); }
  std::int64_t experts() const { return x.spec.cols(); }
  int numThreads() const {
    return static_cast<int>(std::clamp<std::int64_t>(x.spec.numElements() / kLogitsPerThread, 1, threads));
  }
};

std::int64_t* integersAt(const Binding& binding, Pointers pointers) {
  return reinterpret_cast<std::int64_t*>(binding.at(pointers));
}

/// Row of a tensor as numbers.
void readRow(const Binding& binding, Pointers pointers, std::int64_t row, std::span<double> values) {
  const auto rowBytes = static_cast<std::int64_t>(values.size()) * sizeBytes(binding.spec.dtype);
  decode(binding.at(pointers) + row * rowBytes, binding.spec.dtype, values);
}

void writeRow(std::span<const double> values, const Binding& binding, Pointers pointers, std::int64_t row) {
  const auto rowBytes = static_cast<std::int64_t>(values.size()) * sizeBytes(binding.spec.dtype);
  encode(values, binding.spec.dtype, binding.at(pointers) + row * rowBytes);
}

/// Memory of a thread for one token.
struct TokenSpace {
  explicit TokenSpace(const RouterParts& parts)
      : router(parts.form, parts.experts()),
        logits(static_cast<std::size_t>(parts.experts())),
        gradLogits(logits.size()),
        experts(static_cast<std::size_t>(parts.form.topk)),
        probs(experts.size()) {}

  TokenRouter router;
  std::vector<double> logits, gradLogits;
  std::vector<std::int64_t> experts;
  std::vector<double> probs;  // or their gradients
};

class RouterForward final : public Kernel {
 public:
  explicit RouterForward(RouterParts parts) : m(std::move(parts)) {}

  void run(Pointers pointers, std::byte*) override {
    std::vector<double> bias(m.bias ? static_cast<std::size_t>(m.experts()) : 0);
    if (m.bias) readRow(m.bias, pointers, 0, bias);
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(m.tokens() * m.form.topk));
    const int threads = m.numThreads();
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
      TokenSpace space(m);
#pragma omp for
      for (std::int64_t token = 0; token < m.tokens(); ++token) {
        readRow(m.x, pointers, token, space.logits);
        const std::span experts(chosen.data() + token * m.form.topk, static_cast<std::size_t>(m.form.topk));
        space.router.route(space.logits, bias, experts, space.probs);
        if (m.y) writeRow(space.probs, m.y, pointers, token);
      }
    }
    if (m.indices) std::ranges::copy(chosen, integersAt(m.indices, pointers));
    if (m.counts) count(chosen, integersAt(m.counts, pointers));
  }

 private:
  void count(std::span<const std::int64_t> chosen, std::int64_t* counts) const {
    std::fill_n(counts, m.experts(), 0);
    for (const std::int64_t expert : chosen) ++counts[expert];
  }

  RouterParts m;
};

class RouterBackward final : public Kernel {
 public:
  explicit RouterBackward(RouterParts parts) : m(std::move(parts)) {}

  void run(Pointers pointers, std::byte*) override {
    if (m.dBias) std::memset(m.dBias.at(pointers), 0, static_cast<std::size_t>(m.dBias.spec.bytes()));
    if (!m.dx) return;
    if (!m.dy) {
      if (m.dx.spec.bytes() > 0) std::memset(m.dx.at(pointers), 0, static_cast<std::size_t>(m.dx.spec.bytes()));
      return;
    }
    const std::int64_t* const indices = integersAt(m.indices, pointers);
    const int threads = m.numThreads();
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
      TokenSpace space(m);
#pragma omp for
      for (std::int64_t token = 0; token < m.tokens(); ++token) {
        readRow(m.x, pointers, token, space.logits);
        readRow(m.dy, pointers, token, space.probs);
        const std::span experts(indices + token * m.form.topk, static_cast<std::size_t>(m.form.topk));
        space.router.gradient(space.logits, experts, space.probs, space.gradLogits);
        writeRow(space.gradLogits, m.dx, pointers, token);
      }
    }
  }

 private:
  RouterParts m;
};

Result<std::unique_ptr<Kernel>> compileRouter(const CompileRequest& request) {
  Result<RouterStep> step = routerStep(request);
  if (!step) return step.error();
  RouterParts parts{std::move(*step), request.settings.threads};
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<RouterForward>(std::move(parts)));
  return std::unique_ptr<Kernel>(std::make_unique<RouterBackward>(std::move(parts)));
}

}  // namespace top_k_router_parts
}  // namespace

KernelDef top_k_router() {
  using namespace top_k_router_parts;
  return {
      .name = "TopKRouter",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileRouter,
  };
}

}  // namespace fuseline::cpu::kernels
