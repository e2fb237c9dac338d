// Kernel "adamw": all parameters in pieces that the threads share.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/adamw_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/adamw_functions.h"

#include <algorithm>
#include <cmath>

namespace fuseline::cpu::kernels {

namespace {
namespace adamw_parts {

/// Elements that are worth waking a thread for, and few enough to share small models evenly.
constexpr std::int64_t kElementsPerPiece = 1 << 14;

std::byte* offsetBy(const Binding& binding, Pointers pointers, std::int64_t elements) {
  std::byte* const data = binding.at(pointers);
  return data ? data + elements * sizeBytes(binding.spec.dtype) : nullptr;
}

class AdamWKernel final : public Kernel {
 public:
  AdamWKernel(AdamWStep step, int threads) : m_step(std::move(step)), m_terms(m_step.terms()), m_threads(threads) {
    for (const AdamWStep::Parameter& parameter : m_step.parameters)
      for (std::int64_t first = 0; first < parameter.elements(); first += kElementsPerPiece)
        m_pieces.push_back({&parameter, first, std::min(kElementsPerPiece, parameter.elements() - first)});
  }

  void run(Pointers pointers, std::byte*) override {
    std::int64_t& updates = *reinterpret_cast<std::int64_t*>(m_step.numUpdates.at(pointers));
    ++updates;
    const auto* const sums = reinterpret_cast<const float*>(m_step.gradientSquares.at(pointers));
    const double squares = sums ? static_cast<double>(sums[0]) + sums[1] : 0.0;
    const auto corrections =
        adamWCorrections<float>(m_step.options, updates, squares, [](double x) { return std::sqrt(x); });
    const int threads = std::min(m_threads, static_cast<int>(std::max<std::size_t>(m_pieces.size(), 1)));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::size_t i = 0; i < m_pieces.size(); ++i) update(m_pieces[i], pointers, corrections);
  }

 private:
  struct Piece {
    const AdamWStep::Parameter* parameter;
    std::int64_t first;
    std::int64_t count;
  };

  void update(const Piece& piece, Pointers pointers, const AdamWCorrections<float>& corrections) const {
    const AdamWStep::Parameter& parameter = *piece.parameter;
    const auto at = [&](const Binding& binding) { return offsetBy(binding, pointers, piece.first); };
    const AdamWRange range{
        .weights = reinterpret_cast<float*>(at(parameter.master ? parameter.master : parameter.weight)),
        .rounded = parameter.master ? at(parameter.weight) : nullptr,
        .gradients = at(parameter.gradient),
        .expAvg = reinterpret_cast<float*>(at(parameter.expAvg)),
        .expAvgSq = reinterpret_cast<float*>(at(parameter.expAvgSq)),
        .count = static_cast<std::size_t>(piece.count),
        .clears = parameter.clearsGradient()};
    adamWFunction(parameter.weight.spec.dtype, parameter.gradient.spec.dtype)(range, m_terms, corrections);
  }

  AdamWStep m_step;
  AdamWTerms<float> m_terms;
  int m_threads;
  std::vector<Piece> m_pieces;  // point into m_step
};

}  // namespace adamw_parts
}  // namespace

KernelDef adamw();

KernelDef adamw() {
  using namespace adamw_parts;
  return {
      .name = "adamw",
      .phases = {Phase::Optimizer},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        Result<AdamWStep> step = adamWStep(request);
        if (!step) return step.error();
        return std::unique_ptr<Kernel>(std::make_unique<AdamWKernel>(std::move(*step), request.settings.threads));
      },
  };
}

}  // namespace fuseline::cpu::kernels
