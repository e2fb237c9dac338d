// Pieces with their pointers, as many a launch as go with it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layout/column_copy.h"

#include "kernels/cuda/layout/column_copy_launch.h"

#include <utility>

namespace fuseline::cuda {

namespace {

class ColumnCopy final : public Kernel {
 public:
  ColumnCopy(Binding whole, std::vector<BoundPiece> pieces, ColumnCopyDirection direction, Stream stream)
      : m_whole(std::move(whole)), m_pieces(std::move(pieces)), m_direction(direction), m_stream(stream) {
    for (const BoundPiece& piece : m_pieces) m_rowBytes += piece.bytes;
  }

  void run(Pointers pointers, std::byte*) override {
    ColumnPieces launch{.rows = m_rowBytes == 0 ? 0 : m_whole.spec.bytes() / m_rowBytes};
    std::byte* columns = m_whole.at(pointers);
    for (const BoundPiece& piece : m_pieces) {
      launch.pieces[launch.count++] = pieceAt(columns, piece, pointers);
      if (launch.count == ColumnPieces::kMax) launchAll(launch);
      columns += piece.bytes;
    }
    launchAll(launch);
  }

 private:
  ColumnPiece pieceAt(std::byte* columns, const BoundPiece& piece, Pointers pointers) const {
    std::byte* const own = piece.binding.at(pointers);
    if (m_direction == ColumnCopyDirection::ToPieces)
      return {.from = columns, .to = own, .fromRowBytes = m_rowBytes, .toRowBytes = piece.bytes, .bytes = piece.bytes};
    return {.from = own, .to = columns, .fromRowBytes = piece.bytes, .toRowBytes = m_rowBytes, .bytes = piece.bytes};
  }

  void launchAll(ColumnPieces& pieces) const {
    launchColumnCopy(pieces, m_stream);
    pieces.count = 0;
  }

  Binding m_whole;
  std::vector<BoundPiece> m_pieces;
  ColumnCopyDirection m_direction;
  Stream m_stream;
  std::int64_t m_rowBytes = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeColumnCopy(Binding whole, std::vector<BoundPiece> pieces, ColumnCopyDirection direction,
                                       Stream stream) {
  return std::make_unique<ColumnCopy>(std::move(whole), std::move(pieces), direction, stream);
}

std::vector<BoundPiece> boundPieces(const CompileRequest& request, OperandKind kind,
                                    const std::vector<TensorSpec>& specs) {
  std::vector<BoundPiece> pieces;
  for (std::size_t slot = 0; slot < specs.size(); ++slot)
    pieces.push_back({.binding = findOperand(request, {0, kind, static_cast<int>(slot)}),
                      .bytes = specs[slot].cols() * sizeBytes(specs[slot].dtype)});
  return pieces;
}

}  // namespace fuseline::cuda
