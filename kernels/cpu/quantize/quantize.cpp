// Kernel "quantize": the quantized tensors that GEMMs read, or that a Quantize passes on.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"

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
    const float amax = piece.inputs.amax ? *piece.inputs.amax : amaxFor(piece);
    makeCopies(piece.from, piece.source, m_quantizers, piece.inputs, amax, {piece.rowwise, piece.rowwiseMemory},
               {piece.columnwise, piece.columnwiseMemory});
    if (piece.history) recordAmax(piece.history, amax);
  }

  float amaxFor(const QuantizePiece& piece) const { return needsAmax(piece) ? amaxOf(piece.from, piece.source) : 0.0F; }

  /// Blocks find their own.
  bool needsAmax(const QuantizePiece& piece) const {
    if (piece.history) return true;
    const auto isOfAmax = [&](const std::optional<QuantizerSpec>& quantizer) {
      if (!quantizer) return false;
      return isNvfp4(quantizer->scaling) || (quantizer->scaling == Scaling::PerTensor && !piece.inputs.scale);
    };
    return isOfAmax(m_quantizers.rowwise) || isOfAmax(m_quantizers.columnwise);
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
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<Quantize>(request));
      },
  };
}

}  // namespace fuseline::cpu::kernels
