// Kernel "MoEUnpermute": the weighted sum of each token's rows; backward a scaled copy for each row and dot products.
// The host checks the map in the first run: it stays the same from run to run, as all that a run computes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/moved_rows_launch.h"

#include <stdexcept>
#include <utility>

namespace fuseline::cuda::kernels {

KernelDef moe_unpermute();

namespace {

struct UnpermuteParts : UnpermuteStep {
  /// Rows of this element type and width, with the token's weights.
  MovedRows rows(const TensorSpec& from, const TensorSpec& to, Pointers pointers) const {
    return {.element = elementOf(from.dtype),
            .width = from.cols(),
            .rowsFrom = from.rows(),
            .rowsTo = to.rows(),
            .terms = map.spec.cols(),
            .factors = probs.at(pointers),
            .factorElement = probs ? elementOf(probs.spec.dtype) : device::Element::F32};
  }
};

class UnpermuteForward final : public Kernel {
 public:
  UnpermuteForward(UnpermuteParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    checkOnce(pointers);
    MovedRows rows = m.rows(m.x.spec, m.y.spec, pointers);
    rows.from = m.x.at(pointers);
    rows.to = m.y.at(pointers);
    launchRowSums(rows, countsAt(m.map, pointers), m_device.stream);
  }

 private:
  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const auto slots = slotsOfRows(readCounts(m.map, pointers, m_device), m.x.spec.rows());
    if (!slots) throw std::runtime_error(slots.error().message);
  }

  UnpermuteParts m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

class UnpermuteBackward final : public Kernel {
 public:
  UnpermuteBackward(UnpermuteParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

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
    MovedRows rows = m.rows(m.dy.spec, m.dx.spec, pointers);
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

  UnpermuteParts m;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compileUnpermute(const CompileRequest& request) {
  Result<UnpermuteStep> step = unpermuteStep(request);
  if (!step) return step.error();
  UnpermuteParts parts{std::move(*step)};
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<UnpermuteForward>(std::move(parts), request.device));
  return std::unique_ptr<Kernel>(std::make_unique<UnpermuteBackward>(std::move(parts), request.device));
}

Verdict supports(const KernelQuery& query) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Node& node = query.graph.node(query.members[0]);
  const auto specOf = [&](int slot) { return query.graph.value(node.inputs[static_cast<std::size_t>(slot)]).spec; };
  if (specOf(0).rows() < kMost && specOf(UnpermuteStep::kRowIdMap).numElements() < kMost) return Verdict::yes();
  return Verdict::no("MoEUnpermute: x has 2^31 rows or more, or row_id_map as many elements.");
}

}  // namespace

KernelDef moe_unpermute() {
  return {
      .name = "MoEUnpermute",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = compileUnpermute,
  };
}

}  // namespace fuseline::cuda::kernels
