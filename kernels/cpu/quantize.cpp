// Kernel "quantize": the copies of a tensor that GEMMs read, or that a Quantize passes on.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/quantized_copy.h"
#include "kernels/cpu/step_operand.h"

namespace fuseline::cpu::kernels {

namespace {

class Quantize final : public Kernel {
 public:
  explicit Quantize(const CompileRequest& request)
      : m_graph(request.graph),
        m_plan(request.plan),
        m_step(request.step),
        m_work(request.step.copies.front()),
        m_quantizers(m_work.quantizers) {}

  void run(Pointers pointers, std::byte*) override {
    for (const QuantizePiece& piece : quantizePieces(m_graph, m_plan, m_step, m_work, pointers)) run(piece);
  }

 private:
  void run(const QuantizePiece& piece) const {
    const float amax = needsAmax(piece) ? amaxOf(piece.from, piece.source) : 0.0F;
    if (m_quantizers.rowwise) make(*m_quantizers.rowwise, piece, amax, piece.rowwise, piece.rowwiseMemory);
    if (m_quantizers.columnwise && isTransposed(piece))
      transposeCopy(piece.rowwiseMemory, piece.rowwise, piece.columnwiseMemory);
    else if (m_quantizers.columnwise)
      make(*m_quantizers.columnwise, piece, amax, piece.columnwise, piece.columnwiseMemory);
    if (piece.history) recordAmax(piece.history, amax);
  }

  /// Both copies hold the same codes.
  bool isTransposed(const QuantizePiece& piece) const {
    return m_quantizers.rowwise == m_quantizers.columnwise && isTransposeOfRowwise(*m_quantizers.columnwise) &&
           piece.source.numElements() > 0;
  }

  /// Blocks find their own.
  bool needsAmax(const QuantizePiece& piece) const {
    if (piece.history) return true;
    const Scaling scaling = (m_quantizers.rowwise ? m_quantizers.rowwise : m_quantizers.columnwise)->scaling;
    const bool isPerTensor = scaling == Scaling::PerTensor && !piece.inputs.scale;
    return isPerTensor || traitsOf(scaling).scaleFormat == ScaleFormat::E4M3;
  }

  static void make(const QuantizerSpec& quantizer, const QuantizePiece& piece, float amax, const TensorSpec& copy,
                   std::byte* memory) {
    if (memory) quantizeCopy(piece.from, piece.source, quantizer, piece.inputs, amax, copy, memory);
  }

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
  const QuantizeWork& m_work;
  const TensorQuantizers& m_quantizers;
};

}  // namespace

KernelDef quantize();

KernelDef quantize() {
  return {
      .name = "quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<Quantize>(request));
      },
  };
}

}  // namespace fuseline::cpu::kernels
