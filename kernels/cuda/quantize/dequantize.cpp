// Kernel "Quantize": brings the rowwise copy that a Quantize made back to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/quantize/coded_copy.h"

namespace fuseline::cuda::kernels {

namespace {

class Dequantize final : public Kernel {
 public:
  Dequantize(Binding codes, Binding numbers, Stream stream)
      : m_codes(std::move(codes)), m_numbers(std::move(numbers)), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    launchDecode(m_codes.spec, m_codes.at(pointers), m_numbers.at(pointers), m_stream);
  }

 private:
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

}  // namespace

KernelDef dequantize();

KernelDef dequantize() {
  return {
      .name = "Quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
