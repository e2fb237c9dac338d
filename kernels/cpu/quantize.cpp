// Kernel "quantize": the copies of a tensor that the GEMMs of a linear op read.
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
        m_operands(request.step, request.step.copies.front()) {}

  void run(Pointers pointers, std::byte*) override {
    const QuantizerInputs inputs = quantizerInputs(m_graph, m_step.copies.front(), m_operands, pointers);
    const float amax = needsAmax(inputs) ? amaxOf(pointer(pointers, m_operands.source), spec(m_operands.source)) : 0.0F;
    const TensorQuantizers& quantizers = m_step.copies.front().quantizers;
    if (quantizers.rowwise) make(*quantizers.rowwise, inputs, amax, m_operands.rowwise, pointers);
    if (quantizers.columnwise && isTransposed())
      transposeCopy(pointer(pointers, m_operands.rowwise), spec(m_operands.rowwise),
                    pointer(pointers, m_operands.columnwise));
    else if (quantizers.columnwise)
      make(*quantizers.columnwise, inputs, amax, m_operands.columnwise, pointers);
    if (m_operands.history >= 0) recordAmax(pointer(pointers, m_operands.history), amax);
  }

 private:
  static std::byte* pointer(Pointers pointers, int index) { return pointers[static_cast<std::size_t>(index)]; }
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }

  /// Both copies hold the same codes.
  bool isTransposed() const {
    const TensorQuantizers& quantizers = m_step.copies.front().quantizers;
    return quantizers.rowwise == quantizers.columnwise && isTransposeOfRowwise(*quantizers.columnwise) &&
           spec(m_operands.source).numElements() > 0;
  }

  /// Blocks find their own.
  bool needsAmax(const QuantizerInputs& inputs) const {
    if (m_operands.history >= 0) return true;
    const TensorQuantizers& quantizers = m_step.copies.front().quantizers;
    const Scaling scaling = (quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->scaling;
    const bool isPerTensor = scaling == Scaling::PerTensor && !inputs.scale;
    return isPerTensor || traitsOf(scaling).scaleFormat == ScaleFormat::E4M3;
  }

  void make(const QuantizerSpec& quantizer, const QuantizerInputs& inputs, float amax, int copy,
            Pointers pointers) const {
    if (std::byte* const memory = pointer(pointers, copy))
      quantizeCopy(pointer(pointers, m_operands.source), spec(m_operands.source), quantizer, inputs, amax, spec(copy),
                   memory);
  }

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
  QuantizeOperands m_operands;
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
