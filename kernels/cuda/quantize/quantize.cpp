// Kernel "quantize": the quantized tensors that the GEMMs of a linear op read.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/step_copies.h"

namespace fuseline::cuda::kernels {

namespace {
namespace quantize_parts {

class Quantize final : public Kernel {
 public:
  Quantize(StepCopies copies, Binding source, const DeviceContext& device)
      : m_copies(std::move(copies)), m_source(std::move(source)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    if (m_copies.isAmaxOnly()) return m_copies.launchFrom(m_source.at(pointers), pointers, m_device);
    m_copies.numGroups() > 0 ? m_copies.launchGroups(pointers, m_device)
                             : m_copies.launchFromSources(pointers, m_device);
  }

 private:
  StepCopies m_copies;
  Binding m_source;  // of the first tensor
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<StepCopies> copies = StepCopies::make(request);
  if (!copies) return copies.error();
  for (const QuantizeWork& work : request.step.copies)
    if (const Result<Binding> source = requireOperand(request, work.source); !source) return source.error();
  return std::unique_ptr<Kernel>(std::make_unique<Quantize>(
      std::move(*copies), findOperand(request, request.step.copies.front().source), request.device));
}

}  // namespace quantize_parts
}  // namespace

KernelDef quantize();

KernelDef quantize() {
  using namespace quantize_parts;
  return {
      .name = "quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
