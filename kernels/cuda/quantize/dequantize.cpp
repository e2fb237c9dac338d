// Kernel "Quantize": brings the rowwise copy that a Quantize made back to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/dequantize_step.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/coded_copy.h"

namespace fuseline::cuda::kernels {

namespace {
namespace dequantize_parts {

class Dequantize final : public Kernel {
 public:
  Dequantize(DequantizeStep step, Stream stream) : m_step(std::move(step)), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    launchDecode(m_step.codes.spec, m_step.codes.at(pointers), m_step.numbers.at(pointers), m_stream);
  }

 private:
  DequantizeStep m_step;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<DequantizeStep> step = readDequantize(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<Dequantize>(std::move(*step), request.device.stream));
}

}  // namespace dequantize_parts
}  // namespace

KernelDef dequantize();

KernelDef dequantize() {
  using namespace dequantize_parts;
  return {
      .name = "Quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
