// Rows over threads; each row piece by piece.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <omp.h>

namespace fuseline::cpu {

namespace {

/// Smallest number of bytes for which another thread pays.
constexpr std::int64_t kBytesPerThread = 1 << 16;

class ColumnCopy final : public Kernel {
 public:
  ColumnCopy(ColumnCopyStep step, int threads) : m_step(std::move(step)), m_threads(threads) {}

  void run(Pointers pointers, std::byte*) override {
    std::byte* const whole = m_step.whole.at(pointers);
    const std::int64_t worth = m_step.rows * m_step.rowBytes / kBytesPerThread;
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(worth, 1, m_threads));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m_step.rows; ++row) copyRow(whole + row * m_step.rowBytes, row, pointers);
  }

 private:
  void copyRow(std::byte* whole, std::int64_t row, Pointers pointers) const {
    for (const BoundPiece& piece : m_step.pieces) {
      if (piece.isInPlace) continue;
      const auto bytes = static_cast<std::size_t>(piece.bytes);
      std::byte* const columns = whole + piece.firstByte;
      std::byte* const first = piece.binding.at(pointers);
      std::byte* const own = first ? first + row * piece.rowBytes : nullptr;
      if (m_step.direction == ColumnCopyDirection::FromPieces && own) std::memcpy(columns, own, bytes);
      if (m_step.direction == ColumnCopyDirection::FromPieces && !own) std::memset(columns, 0, bytes);
      if (m_step.direction == ColumnCopyDirection::ToPieces && own) std::memcpy(own, columns, bytes);
    }
  }

  ColumnCopyStep m_step;
  int m_threads;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeColumnCopy(const CompileRequest& request, Result<ColumnCopyStep> step) {
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<ColumnCopy>(std::move(*step), request.settings.threads));
}

}  // namespace fuseline::cpu
