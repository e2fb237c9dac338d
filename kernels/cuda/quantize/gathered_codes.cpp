// Kernel "gathered_codes": the quantized tensors of GEMMs from the encoded values that all ranks sent.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/quantize_launch.h"

namespace fuseline::cuda::kernels {

namespace {

class GatheredCodes final : public Kernel {
 public:
  explicit GatheredCodes(const CompileRequest& request)
      : m_plan(request.plan), m_step(request.step), m_operands(request.step), m_stream(request.device.stream) {}

  void run(Pointers pointers, std::byte*) override {
    const bool isTransposed = m_operands.columnwise >= 0;
    launchCopyScale(scaleIn(pointers, m_operands.rows), scaleIn(pointers, m_operands.whole),
                    isTransposed ? scaleIn(pointers, m_operands.columnwise) : nullptr, m_stream);
    if (!isTransposed) return;
    const TensorSpec& whole = spec(m_operands.whole);
    launchTransposeCodes({.codes = reinterpret_cast<const std::uint8_t*>(at(pointers, m_operands.whole)),
                          .to = reinterpret_cast<std::uint8_t*>(at(pointers, m_operands.columnwise)),
                          .rows = whole.rows(),
                          .cols = whole.cols()},
                         m_stream);
  }

 private:
  static std::byte* at(Pointers pointers, int index) { return pointers[static_cast<std::size_t>(index)]; }
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }
  float* scaleIn(Pointers pointers, int index) const {
    return reinterpret_cast<float*>(at(pointers, index) + tensorScaleOffset(spec(index)));
  }

  const Plan& m_plan;
  const Step& m_step;
  GatheredCodesOperands m_operands;
  Stream m_stream;
};

}  // namespace

KernelDef gathered_codes();

KernelDef gathered_codes() {
  return {
      .name = "gathered_codes",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<GatheredCodes>(request));
      },
  };
}

}  // namespace fuseline::cuda::kernels
