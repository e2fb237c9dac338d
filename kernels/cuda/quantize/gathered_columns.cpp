// Kernel "gathered_columns": a columnwise tensor from the values and scales that all ranks sent.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/layout/column_copy_launch.h"
#include "kernels/cuda/quantize/quantize_launch.h"

#include <algorithm>

namespace fuseline::cuda::kernels {

namespace {

class GatheredColumns final : public Kernel {
 public:
  explicit GatheredColumns(const CompileRequest& request)
      : m_operands(request.step),
        m_rows(specAt(request, m_operands.rows)),
        m_whole(specAt(request, m_operands.whole)),
        m_stream(request.device.stream) {}

  void run(Pointers pointers, std::byte*) override {
    std::byte* const whole = at(pointers, m_operands.whole);
    for (const SentLines& lines : sentLines(m_rows, m_whole)) order(lines, at(pointers, m_operands.sent), whole);
    if (!isNvfp4(m_whole.quantized->scaling)) return;
    launchCopyScale(reinterpret_cast<float*>(at(pointers, m_operands.rows) + tensorScaleOffset(m_rows)),
                    reinterpret_cast<float*>(whole + tensorScaleOffset(m_whole)), nullptr, m_stream);
  }

 private:
  static std::byte* at(Pointers pointers, int index) { return pointers[static_cast<std::size_t>(index)]; }
  static const TensorSpec& specAt(const CompileRequest& request, int index) {
    return request.plan.spec(request.step.operands[static_cast<std::size_t>(index)]);
  }

  /// The lines of each rank are a piece of the columns of the whole.
  void order(const SentLines& lines, const std::byte* sent, std::byte* whole) const {
    const std::int64_t ranks = m_whole.rows() / m_rows.rows();
    for (std::int64_t first = 0; first < ranks; first += ColumnPieces::kMax) {
      ColumnPieces pieces{.pieces = {}, .count = 0, .rows = lines.count};
      for (std::int64_t rank = first; rank < std::min<std::int64_t>(ranks, first + ColumnPieces::kMax); ++rank)
        pieces.pieces[pieces.count++] = {.from = sent + lines.from + rank * lines.count * lines.bytes,
                                         .to = whole + lines.to + rank * lines.bytes,
                                         .fromRowBytes = lines.bytes,
                                         .toRowBytes = ranks * lines.bytes,
                                         .bytes = lines.bytes};
      launchColumnCopy(pieces, m_stream);
    }
  }

  GatheredColumnsOperands m_operands;
  TensorSpec m_rows;
  TensorSpec m_whole;
  Stream m_stream;
};

}  // namespace

KernelDef gathered_columns();

KernelDef gathered_columns() {
  return {
      .name = "gathered_columns",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<GatheredColumns>(request));
      },
  };
}

}  // namespace fuseline::cuda::kernels
