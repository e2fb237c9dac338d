// Kernel "quantize": the quantized tensors that the GEMMs of a linear op read.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/step_copies.h"

namespace fuseline::cuda::kernels {

namespace {

class Quantize final : public Kernel {
 public:
  Quantize(StepCopies copies, Binding source, const DeviceContext& device)
      : m_copies(std::move(copies)), m_source(std::move(source)), m_device(device) {}

  std::size_t workspaceBytes() const override { return m_copies.workspaceBytes(); }

  void run(Pointers pointers, std::byte* workspace) override {
    auto* const amax = reinterpret_cast<float*>(workspace);
    if (m_copies.numGroups() > 0)
      m_copies.launchGroupsFrom(m_source.at(pointers), pointers, amax, m_device);
    else
      m_copies.launchFrom(m_source.at(pointers), pointers, amax, m_device);
  }

 private:
  StepCopies m_copies;
  Binding m_source;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<StepCopies> copies = StepCopies::make(request);
  if (!copies) return copies.error();
  const Result<Binding> source = requireOperand(request, copies->source());
  if (!source) return source.error();
  return std::unique_ptr<Kernel>(std::make_unique<Quantize>(std::move(*copies), *source, request.device));
}

}  // namespace

KernelDef quantize();

KernelDef quantize() {
  return {
      .name = "quantize",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
