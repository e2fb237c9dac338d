// Kernel "Quantize": brings the rowwise copy that a Quantize made back to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/scaling.h"
#include "kernels/cuda/block_quantize_launch.h"
#include "kernels/cuda/coded_copy.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/linear_parts.h"
#include "kernels/cuda/quantize_launch.h"

namespace fuseline::cuda::kernels {

namespace {

class Dequantize final : public Kernel {
 public:
  Dequantize(Binding codes, Binding numbers, Stream stream)
      : m_codes(std::move(codes)), m_numbers(std::move(numbers)), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    const bool hasBlocks = m_codes.spec.quantized->scaling != Scaling::PerTensor;
    hasBlocks ? runBlocks(pointers) : runTensor(pointers);
  }

 private:
  void runTensor(Pointers pointers) const {
    const std::byte* const memory = m_codes.at(pointers);
    launchDequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory),
                      .inverseScale = reinterpret_cast<const float*>(memory + partsOf(m_codes.spec).scalesOffset),
                      .code = floatCodeOf(m_codes.spec.quantized->format),
                      .out = m_numbers.at(pointers),
                      .element = elementOf(m_numbers.spec.dtype),
                      .elements = m_numbers.spec.numElements()},
                     m_stream);
  }

  void runBlocks(Pointers pointers) const {
    const QuantizedForm& form = *m_codes.spec.quantized;
    const BlockShape block = traitsOf(form.scaling).block;
    launchBlockDequantize({.copy = codedCopyOf(m_codes.spec, m_codes.at(pointers)),
                           .isE8m0 = traitsOf(form.scaling).scaleFormat == ScaleFormat::E8M0,
                           .blockRows = block.rows,
                           .blockCols = block.cols,
                           .out = m_numbers.at(pointers),
                           .element = elementOf(m_numbers.spec.dtype),
                           .rows = m_numbers.spec.rows(),
                           .cols = m_numbers.spec.cols()},
                          m_stream);
  }

  Binding m_codes, m_numbers;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> codes =
      requireOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradOutput, 0});
  if (!codes) return codes.error();
  const Result<Binding> numbers =
      requireOperand(request, {0, isForward ? OperandKind::Output : OperandKind::GradInput, 0});
  if (!numbers) return numbers.error();
  return std::unique_ptr<Kernel>(std::make_unique<Dequantize>(*codes, *numbers, request.device.stream));
}

/// What the step "quantize" before it makes.
Verdict supports(const KernelQuery& query) {
  const LinearQuantizers& quantizers = query.graph.node(query.members.front()).quantizers;
  return fitsLibrary((query.phase == Phase::Forward ? quantizers.input : quantizers.gradOutput).rowwise);
}

}  // namespace

KernelDef dequantize();

KernelDef dequantize() {
  return {
      .name = "Quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
