// Rows over threads; each row piece by piece.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <omp.h>

namespace fuseline::cpu {

namespace {

/// A thread is worth waking for so many bytes.
constexpr std::int64_t kBytesPerThread = 1 << 16;

class ColumnCopy final : public Kernel {
 public:
  ColumnCopy(Binding whole, std::vector<ColumnPiece> pieces, ColumnCopyDirection direction, int threads)
      : m_whole(std::move(whole)), m_pieces(std::move(pieces)), m_direction(direction), m_threads(threads) {
    for (const ColumnPiece& piece : m_pieces) m_rowBytes += piece.bytes;
  }

  void run(Pointers pointers, std::byte*) override {
    const std::int64_t rows = m_rowBytes == 0 ? 0 : m_whole.spec.bytes() / m_rowBytes;
    std::byte* const whole = m_whole.at(pointers);
    const std::int64_t worth = rows * m_rowBytes / kBytesPerThread;
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(worth, 1, m_threads));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < rows; ++row) copyRow(whole + row * m_rowBytes, row, pointers);
  }

 private:
  void copyRow(std::byte* whole, std::int64_t row, Pointers pointers) const {
    for (const ColumnPiece& piece : m_pieces) {
      const auto bytes = static_cast<std::size_t>(piece.bytes);
      std::byte* const first = piece.binding.at(pointers);
      std::byte* const own = first ? first + row * piece.bytes : nullptr;
      if (m_direction == ColumnCopyDirection::FromPieces && own) std::memcpy(whole, own, bytes);
      if (m_direction == ColumnCopyDirection::FromPieces && !own) std::memset(whole, 0, bytes);
      if (m_direction == ColumnCopyDirection::ToPieces && own) std::memcpy(own, whole, bytes);
      whole += piece.bytes;
    }
  }

  Binding m_whole;
  std::vector<ColumnPiece> m_pieces;
  ColumnCopyDirection m_direction;
  int m_threads;
  std::int64_t m_rowBytes = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeColumnCopy(Binding whole, std::vector<ColumnPiece> pieces, ColumnCopyDirection direction,
                                       int threads) {
  return std::make_unique<ColumnCopy>(std::move(whole), std::move(pieces), direction, threads);
}

std::vector<ColumnPiece> columnPieces(const CompileRequest& request, OperandKind kind,
                                      const std::vector<TensorSpec>& specs) {
  std::vector<ColumnPiece> pieces;
  for (std::size_t slot = 0; slot < specs.size(); ++slot)
    pieces.push_back({.binding = findOperand(request, {0, kind, static_cast<int>(slot)}),
                      .bytes = specs[slot].cols() * sizeBytes(specs[slot].dtype)});
  return pieces;
}

}  // namespace fuseline::cpu
