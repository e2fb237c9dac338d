// Pieces with their pointers, as many a launch as go with it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layout/column_copy.h"

#include "kernels/cuda/layout/column_copy_launch.h"

#include <utility>

namespace fuseline::cuda {

namespace {

class ColumnCopy final : public Kernel {
 public:
  ColumnCopy(ColumnCopyStep step, Stream stream) : m_step(std::move(step)), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    ColumnPieces launch{.rows = m_step.rows};
    std::byte* const whole = m_step.whole.at(pointers);
    for (const BoundPiece& piece : m_step.pieces) {
      launch.pieces[launch.count++] = pieceAt(whole + piece.firstByte, piece, pointers);
      if (launch.count == ColumnPieces::kMax) launchAll(launch);
    }
    launchAll(launch);
  }

 private:
  ColumnPiece pieceAt(std::byte* columns, const BoundPiece& piece, Pointers pointers) const {
    if (piece.isInPlace) return {};
    std::byte* const own = piece.binding.at(pointers);
    if (m_step.direction == ColumnCopyDirection::ToPieces)
      return {.from = columns,
              .to = own,
              .fromRowBytes = m_step.rowBytes,
              .toRowBytes = piece.rowBytes,
              .bytes = piece.bytes};
    return {.from = own,
            .to = columns,
            .fromRowBytes = piece.rowBytes,
            .toRowBytes = m_step.rowBytes,
            .bytes = piece.bytes};
  }

  void launchAll(ColumnPieces& pieces) const {
    launchColumnCopy(pieces, m_stream);
    pieces.count = 0;
  }

  ColumnCopyStep m_step;
  Stream m_stream;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeColumnCopy(const CompileRequest& request, Result<ColumnCopyStep> step) {
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<ColumnCopy>(std::move(*step), request.device.stream));
}

}  // namespace fuseline::cuda
