// Kernel "Quantize": dequantizes the output of a Quantize to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/dequantize_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"

namespace fuseline::cpu::kernels {

namespace {

class Dequantize final : public Kernel {
 public:
  explicit Dequantize(DequantizeStep step) : m_step(std::move(step)) {}

  void run(Pointers pointers, std::byte*) override {
    if (std::byte* const out = m_step.numbers.at(pointers))
      dequantizeCopy(m_step.codes.at(pointers), m_step.codes.spec, m_step.numbers.spec.dtype, out);
  }

 private:
  DequantizeStep m_step;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<DequantizeStep> step = readDequantize(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<Dequantize>(std::move(*step)));
}

}  // namespace

KernelDef dequantize();

KernelDef dequantize() {
  return {
      .name = "Quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
      .readsCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
