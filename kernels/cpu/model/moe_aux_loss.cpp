// Kernel "MoEAuxLoss": pieces of tokens over threads, whose sums are added in their order: the same bits on any number
// of threads.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"
#include "kernels/common/aux_loss_step.h"
#include "kernels/cpu/kernel_def.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace fuseline::cpu::kernels {

KernelDef moe_aux_loss();

namespace {

/// Tokens of a piece.
constexpr std::int64_t kPiece = 64;

/// Neighboring tokens of a layer.
struct Piece {
  const AuxLossStep::Layer* layer = nullptr;
  std::int64_t first = 0;
  std::int64_t end = 0;
};

class AuxLossKernel : public Kernel {
 public:
  AuxLossKernel(AuxLossStep step, int threads) : m(std::move(step)), m_threads(threads) {
    for (const AuxLossStep::Layer& layer : m.layers)
      for (std::int64_t first = 0; first < layer.logits.spec.rows(); first += kPiece)
        m_pieces.push_back({&layer, first, std::min(first + kPiece, layer.logits.spec.rows())});
  }

 protected:
  std::size_t experts() const { return static_cast<std::size_t>(m.experts()); }

  /// Tokens of each expert, of all layers.
  std::vector<double> load(Pointers pointers) const {
    std::vector<double> sums(experts());
    for (const AuxLossStep::Layer& layer : m.layers) {
      const auto* const counts = reinterpret_cast<const std::int64_t*>(layer.counts.at(pointers));
      for (std::size_t e = 0; e < sums.size(); ++e) sums[e] += static_cast<double>(counts[e]);
    }
    return sums;
  }

  /// f(piece, token, row, logits) for every token. The logits may be overwritten.
  template <class Function>
  void forTokens(Pointers pointers, const Function& f) const {
    const auto count = static_cast<std::int64_t>(m_pieces.size());
    const int threads = static_cast<int>(std::clamp<std::int64_t>(count, 1, m_threads));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < count; ++i) {
      const Piece& piece = m_pieces[static_cast<std::size_t>(i)];
      TokenScores token(m.form.score, m.experts());
      std::vector<double> logits(experts());
      for (std::int64_t row = piece.first; row < piece.end; ++row) {
        const TensorSpec& spec = piece.layer->logits.spec;
        decode(piece.layer->logits.at(pointers) + row * spec.cols() * sizeBytes(spec.dtype), spec.dtype, logits);
        token.read(logits);
        f(static_cast<std::size_t>(i), token, row, logits);
      }
    }
  }

  AuxLossStep m;
  int m_threads;
  std::vector<Piece> m_pieces;
};

class AuxLossForward final : public AuxLossKernel {
 public:
  using AuxLossKernel::AuxLossKernel;

  void run(Pointers pointers, std::byte*) override {
    const std::vector<double> numTokens = load(pointers);
    const double loadFactor = m.form.loadFactor(m.experts(), m.tokens());
    const double zFactor = m.form.zFactor(m.tokens());
    std::vector<double> sums(m_pieces.size());
    forTokens(pointers, [&](std::size_t piece, const TokenScores& token, std::int64_t, std::span<double>) {
      double sum = 0.0;
      for (std::size_t e = 0; e < numTokens.size(); ++e) sum += numTokens[e] * token.scores()[e];
      sums[piece] += loadFactor * sum + zFactor * token.logSumExp() * token.logSumExp();
    });
    double loss = 0.0;
    for (const double sum : sums) loss += sum;
    *reinterpret_cast<float*>(m.y.at(pointers)) = static_cast<float>(loss);
  }
};

class AuxLossBackward final : public AuxLossKernel {
 public:
  using AuxLossKernel::AuxLossKernel;

  void run(Pointers pointers, std::byte*) override {
    const double dy = *reinterpret_cast<const float*>(m.dy.at(pointers));
    std::vector<double> gradScores = load(pointers);
    for (double& gradient : gradScores) gradient *= dy * m.form.loadFactor(m.experts(), m.tokens());
    const double ofSquares = 2.0 * dy * m.form.zFactor(m.tokens());
    forTokens(pointers, [&](std::size_t piece, const TokenScores& token, std::int64_t row, std::span<double> gradient) {
      const Binding& dLogits = m_pieces[piece].layer->dLogits;
      if (!dLogits) return;
      token.gradient(gradScores, ofSquares * token.logSumExp(), gradient);
      const TensorSpec& spec = dLogits.spec;
      encode(gradient, spec.dtype, dLogits.at(pointers) + row * spec.cols() * sizeBytes(spec.dtype));
    });
  }
};

Result<std::unique_ptr<Kernel>> compileAuxLoss(const CompileRequest& request) {
  Result<AuxLossStep> step = auxLossStep(request);
  if (!step) return step.error();
  const int threads = request.settings.threads;
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<AuxLossForward>(std::move(*step), threads));
  return std::unique_ptr<Kernel>(std::make_unique<AuxLossBackward>(std::move(*step), threads));
}

}  // namespace

KernelDef moe_aux_loss() {
  return {
      .name = "MoEAuxLoss",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileAuxLoss,
  };
}

}  // namespace fuseline::cpu::kernels
