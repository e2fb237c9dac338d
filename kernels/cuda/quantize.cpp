// Kernel "quantize": the copies of a tensor that the GEMMs of a linear op read; with one scale a tensor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize_launch.h"

#include "core/runtime/quantize_steps.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/linear_parts.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {

class Quantize final : public Kernel {
 public:
  explicit Quantize(const CompileRequest& request)
      : m_plan(request.plan),
        m_step(request.step),
        m_operands(request.step, request.step.copies.front()),
        m_device(request.device) {}

  /// The amax, where no history keeps it.
  std::size_t workspaceBytes() const override { return sizeof(float); }

  void run(Pointers pointers, std::byte* workspace) override {
    const TensorSpec& x = spec(m_operands.source);
    float* const amax = findAmax(pointers, workspace);
    const TensorQuantizers& quantizers = m_step.copies.front().quantizers;
    launchQuantize({.x = at(pointers, m_operands.source),
                    .element = elementOf(x.dtype),
                    .rows = x.rows(),
                    .cols = x.cols(),
                    .rowwise = copyOf(quantizers.rowwise, m_operands.rowwise, pointers),
                    .columnwise = copyOf(quantizers.columnwise, m_operands.columnwise, pointers),
                    .scale = reinterpret_cast<const float*>(at(pointers, m_operands.scale)),
                    .amax = amax},
                   m_device.stream);
  }

 private:
  static std::byte* at(Pointers pointers, int index) {
    return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
  }
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }

  /// With delayed scaling that of the step at hand, which begins at 0.
  float* findAmax(Pointers pointers, std::byte* workspace) const {
    auto* const history = reinterpret_cast<float*>(at(pointers, m_operands.history));
    if (!history && m_operands.scale >= 0) return nullptr;
    float* const amax = history ? history : reinterpret_cast<float*>(workspace);
    if (!history) launchClear(amax, m_device.stream);
    const TensorSpec& x = spec(m_operands.source);
    launchAmax(at(pointers, m_operands.source), elementOf(x.dtype), x.numElements(), amax, m_device.numMultiprocessors,
               m_device.stream);
    return amax;
  }

  QuantizedCopy copyOf(const std::optional<QuantizerSpec>& quantizer, int index, Pointers pointers) const {
    std::byte* const memory = at(pointers, index);
    if (!quantizer || !memory) return {};
    return {.codes = reinterpret_cast<std::uint8_t*>(memory),
            .inverseScale = reinterpret_cast<float*>(memory + partsOf(spec(index)).scalesOffset),
            .code = quantizer->format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3,
            .rule = {.epsilon = quantizer->scale.epsilon, .isPowerOfTwo = quantizer->scale.isPowerOfTwo}};
  }

  const Plan& m_plan;
  const Step& m_step;
  QuantizeOperands m_operands;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const TensorQuantizers& quantizers = request.step.copies.front().quantizers;
  for (const auto& quantizer : {quantizers.rowwise, quantizers.columnwise})
    if (const Verdict fits = fitsLibrary(quantizer); !fits) return Error{fits.reason(), ErrorKind::RunFailed};
  return std::unique_ptr<Kernel>(std::make_unique<Quantize>(request));
}

}  // namespace

KernelDef quantize();

KernelDef quantize() {
  return {
      .name = "quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
