// Kernel "grad_norm": the squares of all gradients in pieces that the threads share, added in the order of the pieces.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/adamw_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/adamw_functions.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fuseline::cpu::kernels {

namespace {
namespace grad_norm_parts {

/// Few enough for a sum in float32, and worth waking a thread for.
constexpr std::int64_t kElementsPerPiece = 1 << 14;

class GradNormKernel final : public Kernel {
 public:
  GradNormKernel(GradNormStep step, int threads) : m_step(std::move(step)), m_threads(threads) {
    addPieces(m_step.shards);
    m_numShardPieces = m_pieces.size();
    addPieces(m_step.wholes);
    m_sums.resize(m_pieces.size());
  }

  void run(Pointers pointers, std::byte*) override {
    const int threads = std::min(m_threads, static_cast<int>(std::max<std::size_t>(m_pieces.size(), 1)));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::size_t i = 0; i < m_pieces.size(); ++i) m_sums[i] = sumOf(m_pieces[i], pointers);
    auto* const squares = reinterpret_cast<float*>(m_step.squares.at(pointers));
    const auto middle = m_sums.begin() + static_cast<std::ptrdiff_t>(m_numShardPieces);
    squares[0] = static_cast<float>(std::accumulate(m_sums.begin(), middle, 0.0));
    squares[1] = static_cast<float>(std::accumulate(middle, m_sums.end(), 0.0));
  }

 private:
  struct Piece {
    const Binding* gradient;
    std::int64_t first;
    std::int64_t count;
  };

  void addPieces(const std::vector<Binding>& gradients) {
    for (const Binding& gradient : gradients)
      for (std::int64_t first = 0; first < gradient.spec.numElements(); first += kElementsPerPiece)
        m_pieces.push_back({&gradient, first, std::min(kElementsPerPiece, gradient.spec.numElements() - first)});
  }

  static double sumOf(const Piece& piece, Pointers pointers) {
    const DType dtype = piece.gradient->spec.dtype;
    const std::byte* const data = piece.gradient->at(pointers) + piece.first * sizeBytes(dtype);
    return squaresFunction(dtype)(data, static_cast<std::size_t>(piece.count));
  }

  GradNormStep m_step;
  int m_threads;
  std::vector<Piece> m_pieces;  // point into m_step
  std::size_t m_numShardPieces = 0;
  std::vector<double> m_sums;  // by piece
};

}  // namespace grad_norm_parts
}  // namespace

KernelDef grad_norm();

KernelDef grad_norm() {
  using namespace grad_norm_parts;
  return {
      .name = "grad_norm",
      .phases = {Phase::Optimizer},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        Result<GradNormStep> step = gradNormStep(request);
        if (!step) return step.error();
        return std::unique_ptr<Kernel>(std::make_unique<GradNormKernel>(std::move(*step), request.settings.threads));
      },
  };
}

}  // namespace fuseline::cpu::kernels
