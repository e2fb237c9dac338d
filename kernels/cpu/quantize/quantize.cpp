// Kernel "quantize": the quantized tensors that GEMMs read, or that a Quantize passes on.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"

#include <cstring>

namespace fuseline::cpu::kernels {

namespace {

class Quantize final : public Kernel {
 public:
  explicit Quantize(const CompileRequest& request)
      : m_graph(request.graph), m_plan(request.plan), m_step(request.step) {}

  void run(Pointers pointers, std::byte*) override {
    const std::optional<float> common = commonAmax(m_graph, m_step, pointers, amaxOf);
    for (const QuantizeWork& work : m_step.copies) {
      if (work.isAmaxOnly()) {
        findAmax(work, pointers);
        continue;
      }
      for (QuantizePiece& piece : quantizePieces(m_graph, m_plan, m_step, work, pointers)) {
        if (common) piece.inputs.amax = common;
        run(work.quantizers, piece);
      }
    }
  }

 private:
  void findAmax(const QuantizeWork& work, Pointers pointers) const {
    const QuantizeOperands operands(m_step, work);
    const float amax = amaxOf(pointers[static_cast<std::size_t>(operands.source)], work.spec);
    std::memcpy(pointers[static_cast<std::size_t>(operands.foundAmax)], &amax, sizeof(amax));
    if (operands.foundTransformedAmax < 0) return;
    const float transformed = transformedAmaxOf(pointers[static_cast<std::size_t>(operands.source)], work.spec);
    std::memcpy(pointers[static_cast<std::size_t>(operands.foundTransformedAmax)], &transformed, sizeof(transformed));
  }

  static void run(const TensorQuantizers& quantizers, const QuantizePiece& piece) {
    const float amax = piece.inputs.amax ? *piece.inputs.amax : amaxFor(quantizers, piece);
    makeCopies(piece.from, piece.source, quantizers, piece.inputs, amax, {piece.rowwise, piece.rowwiseMemory},
               {piece.columnwise, piece.columnwiseMemory});
    if (piece.history) recordAmax(piece.history, amax);
  }

  static float amaxFor(const TensorQuantizers& quantizers, const QuantizePiece& piece) {
    return needsAmax(quantizers, piece) ? amaxOf(piece.from, piece.source) : 0.0F;
  }

  /// Blocks find their own.
  static bool needsAmax(const TensorQuantizers& quantizers, const QuantizePiece& piece) {
    if (piece.history) return true;
    const auto isOfAmax = [&](const std::optional<QuantizerSpec>& quantizer) {
      if (!quantizer) return false;
      return isNvfp4(quantizer->scaling) || (quantizer->scaling == Scaling::PerTensor && !piece.inputs.scale);
    };
    return isOfAmax(quantizers.rowwise) || isOfAmax(quantizers.columnwise);
  }

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
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
