// Kernel "MoEUnpermute": the weighted sum of each token's rows; backward a scaled copy for each row and dot products.
// The host checks the map in the first run: it stays the same from run to run, as all that a run computes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/unpermute_steps.h"

#include <utility>

namespace fuseline::cuda::kernels {

KernelDef moe_unpermute();

namespace {

class UnpermuteBackward final : public Kernel {
 public:
  UnpermuteBackward(UnpermuteStep parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  /// The slot of each row.
  std::size_t workspaceBytes() const override {
    return m.dx ? static_cast<std::size_t>(m.dx.spec.rows()) * sizeof(std::int32_t) : 0;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    if (m.dx) writeRows(pointers, reinterpret_cast<std::int32_t*>(workspace));
    if (m.dProbs) writeProbs(pointers);
  }

 private:
  void writeRows(Pointers pointers, std::int32_t* slotOfRow) const {
    launchSlotsOfRows(countsAt(m.map, pointers), m.map.spec.numElements(), slotOfRow, m.dx.spec.rows(),
                      m_device.stream);
    MovedRows rows = movedRowsOf(m, m.dy.spec, m.dx.spec, pointers);
    rows.from = m.dy.at(pointers);
    rows.to = m.dx.at(pointers);
    launchCopiedRows(rows, slotOfRow, m_device.stream);
  }

  void writeProbs(Pointers pointers) const {
    const RowDots dots{.a = m.dy.at(pointers),
                       .b = m.x.at(pointers),
                       .element = elementOf(m.x.spec.dtype),
                       .width = m.x.spec.cols(),
                       .slots = m.map.spec.numElements(),
                       .terms = m.map.spec.cols(),
                       .rows = m.x.spec.rows(),
                       .rowOfSlot = countsAt(m.map, pointers),
                       .dots = m.dProbs.at(pointers),
                       .dotElement = elementOf(m.dProbs.spec.dtype)};
    launchRowDots(dots, m_device.stream);
  }

  UnpermuteStep m;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compileUnpermute(const CompileRequest& request) {
  Result<UnpermuteStep> step = unpermuteStep(request);
  if (!step) return step.error();
  if (request.step.phase == Phase::Forward) return makeUnpermuteForward({std::move(*step), {}}, request.device);
  return std::unique_ptr<Kernel>(std::make_unique<UnpermuteBackward>(std::move(*step), request.device));
}

}  // namespace

KernelDef moe_unpermute() {
  return {
      .name = "MoEUnpermute",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supportsUnpermute,
      .compile = compileUnpermute,
  };
}

}  // namespace fuseline::cuda::kernels
