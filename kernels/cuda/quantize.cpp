// Kernel "quantize": the copies of a tensor that the GEMMs of a linear op read.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize_launch.h"

#include "core/runtime/quantize_steps.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/block_quantize_launch.h"
#include "kernels/cuda/coded_copy.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/linear_parts.h"
#include "kernels/cuda/result_copies.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {

/// What both kinds of kernels know of their step.
class QuantizeStep : public Kernel {
 protected:
  explicit QuantizeStep(const CompileRequest& request)
      : m_plan(request.plan), m_step(request.step), m_operands(request.step, request.step.copies.front()) {}

  static std::byte* at(Pointers pointers, int index) {
    return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
  }
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }
  const TensorQuantizers& quantizers() const { return m_step.copies.front().quantizers; }
  const QuantizeOperands& operands() const { return m_operands; }

  device::CodedCopy copyOf(const std::optional<QuantizerSpec>& quantizer, int index, Pointers pointers) const {
    if (!quantizer || index < 0) return {};
    device::CodedCopy copy = codedCopyOf(spec(index), at(pointers, index));
    copy.rule = scaleRuleOf(*quantizer, spec(m_operands.source).dtype);
    return copy;
  }

 private:
  const Plan& m_plan;
  const Step& m_step;
  QuantizeOperands m_operands;
};

class Quantize final : public QuantizeStep {
 public:
  explicit Quantize(const CompileRequest& request) : QuantizeStep(request), m_device(request.device) {}

  /// The amax, where no history keeps it.
  std::size_t workspaceBytes() const override { return sizeof(float); }

  void run(Pointers pointers, std::byte* workspace) override {
    const TensorSpec& x = spec(operands().source);
    float* const amax = findAmax(pointers, workspace);
    launchQuantize({.x = at(pointers, operands().source),
                    .element = elementOf(x.dtype),
                    .rows = x.rows(),
                    .cols = x.cols(),
                    .rowwise = copyOf(quantizers().rowwise, operands().rowwise, pointers),
                    .columnwise = copyOf(quantizers().columnwise, operands().columnwise, pointers),
                    .scale = reinterpret_cast<const float*>(at(pointers, operands().scale)),
                    .amax = amax},
                   m_device.stream);
  }

 private:
  /// With delayed scaling that of the step at hand, which begins at 0.
  float* findAmax(Pointers pointers, std::byte* workspace) const {
    auto* const history = reinterpret_cast<float*>(at(pointers, operands().history));
    if (!history && operands().scale >= 0) return nullptr;
    float* const amax = history ? history : reinterpret_cast<float*>(workspace);
    if (!history) launchClear(amax, m_device.stream);
    const TensorSpec& x = spec(operands().source);
    launchAmax(at(pointers, operands().source), elementOf(x.dtype), x.numElements(), amax, m_device.numMultiprocessors,
               m_device.stream);
    return amax;
  }

  const DeviceContext& m_device;
};

/// A scale for every block, from the block's own amax: there is no state, and nothing to look for before.
class QuantizeBlocks final : public QuantizeStep {
 public:
  explicit QuantizeBlocks(const CompileRequest& request) : QuantizeStep(request), m_stream(request.device.stream) {}

  void run(Pointers pointers, std::byte*) override {
    const TensorSpec& x = spec(operands().source);
    const std::optional<QuantizerSpec>& any = quantizers().rowwise ? quantizers().rowwise : quantizers().columnwise;
    launchBlockQuantize({.x = at(pointers, operands().source),
                         .element = elementOf(x.dtype),
                         .rows = x.rows(),
                         .cols = x.cols(),
                         .rowwise = copyOf(quantizers().rowwise, operands().rowwise, pointers),
                         .columnwise = copyOf(quantizers().columnwise, operands().columnwise, pointers)},
                        copyKindOf(any->scaling), m_stream);
  }

 private:
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const TensorQuantizers& quantizers = request.step.copies.front().quantizers;
  for (const Verdict& fits :
       {fitsLibrary(quantizers.rowwise), fitsLibrary(quantizers.columnwise), haveOneScaling(quantizers)})
    if (!fits) return Error{fits.reason(), ErrorKind::RunFailed};
  const std::optional<QuantizerSpec>& any = quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise;
  if (any->scaling == Scaling::PerTensor) return std::unique_ptr<Kernel>(std::make_unique<Quantize>(request));
  return std::unique_ptr<Kernel>(std::make_unique<QuantizeBlocks>(request));
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
