// Launches the sum of a token's rows.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/unpermute_steps.h"

#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"

#include <stdexcept>
#include <utility>

namespace fuseline::cuda {

namespace {

class UnpermuteForward final : public Kernel {
 public:
  UnpermuteForward(UnpermuteAddStep step, const DeviceContext& device) : m(std::move(step)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    checkOnce(pointers);
    MovedRows rows = movedRowsOf(m, m.x.spec, m.y.spec, pointers);
    rows.from = m.x.at(pointers);
    rows.to = m.y.at(pointers);
    for (std::size_t i = 0; i < m.addends.size(); ++i) rows.addends[i] = m.addends[i].at(pointers);
    launchRowSums(rows, countsAt(m.map, pointers), m_device.stream);
  }

 private:
  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const auto slots = slotsOfRows(readCounts(m.map, pointers, m_device), m.x.spec.rows());
    if (!slots) throw std::runtime_error(slots.error().message);
  }

  UnpermuteAddStep m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

}  // namespace

MovedRows movedRowsOf(const UnpermuteStep& step, const TensorSpec& from, const TensorSpec& to, Pointers pointers) {
  return {.element = elementOf(from.dtype),
          .width = from.cols(),
          .rowsFrom = from.rows(),
          .rowsTo = to.rows(),
          .terms = step.map.spec.cols(),
          .factors = step.probs.at(pointers),
          .factorElement = step.probs ? elementOf(step.probs.spec.dtype) : device::Element::F32};
}

std::unique_ptr<Kernel> makeUnpermuteForward(UnpermuteAddStep step, const DeviceContext& device) {
  return std::make_unique<UnpermuteForward>(std::move(step), device);
}

Verdict supportsUnpermute(const KernelQuery& query) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Node& node = query.graph.node(query.members[0]);
  const auto specOf = [&](int slot) { return query.graph.value(node.inputs[static_cast<std::size_t>(slot)]).spec; };
  if (specOf(0).rows() < kMost && specOf(UnpermuteStep::kRowIdMap).numElements() < kMost) return Verdict::yes();
  return Verdict::no("MoEUnpermute: x has 2^31 rows or more, or row_id_map as many elements.");
}

}  // namespace fuseline::cuda
