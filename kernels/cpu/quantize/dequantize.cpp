// Kernel "Quantize": dequantizes the output of a Quantize to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"
#include "kernels/cpu/step_operand.h"

namespace fuseline::cpu::kernels {

namespace {

class Dequantize final : public Kernel {
 public:
  Dequantize(Binding codes, Binding numbers) : m_codes(std::move(codes)), m_numbers(std::move(numbers)) {}

  void run(Pointers pointers, std::byte*) override {
    if (std::byte* const out = m_numbers.at(pointers))
      dequantizeCopy(m_codes.at(pointers), m_codes.spec, m_numbers.spec.dtype, out);
  }

 private:
  Binding m_codes, m_numbers;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> codes =
      requireOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradOutput, 0});
  if (!codes) return codes.error();
  const Result<Binding> numbers =
      requireOperand(request, {0, isForward ? OperandKind::Output : OperandKind::GradInput, 0});
  if (!numbers) return numbers.error();
  return std::unique_ptr<Kernel>(std::make_unique<Dequantize>(*codes, *numbers));
}

}  // namespace

KernelDef dequantize();

KernelDef dequantize() {
  return {
      .name = "Quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compile,
      .readsCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
