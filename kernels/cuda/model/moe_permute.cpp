// Kernel "MoEPermute": a counting sort of the slots, then a copy of each row, which may be quantized on the way;
// backward adds the rows of each token.
// The host checks the experts in the first run: they stay the same from run to run, as all that a run computes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/moved_rows_launch.h"
#include "kernels/cuda/model/permute_quantize_launch.h"
#include "kernels/cuda/quantize/step_copies.h"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cuda::kernels {

KernelDef moe_permute();

namespace {
namespace moe_permute_parts {

/// With its step's fused quantization, if it has any.
class PermuteForward final : public Kernel {
 public:
  PermuteForward(PermuteStep step, std::optional<StepCopies> copies, const DeviceContext& device)
      : m(std::move(step)), m_copies(std::move(copies)), m_device(device) {}

  std::size_t workspaceBytes() const override {
    return (scratch() + static_cast<std::size_t>(areRowsMade() ? numRows() : 0)) * sizeof(std::int32_t);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    checkOnce(pointers);
    auto* const memory = reinterpret_cast<std::int32_t*>(workspace);
    const SlotSort sort{.experts = countsAt(m.indices, pointers),
                        .slots = slots(),
                        .numExperts = m.form.numExperts,
                        .alignSize = m.form.alignSize,
                        .rows = numRows(),
                        .scratch = memory,
                        .rowOfSlot = reinterpret_cast<std::int64_t*>(m.map.at(pointers)),
                        .splitSizes = reinterpret_cast<std::int64_t*>(m.sizes.at(pointers)),
                        .slotOfRow = areRowsMade() ? memory + scratch() : nullptr};
    launchSlotSort(sort, m_device.stream);
    if (m_copies) return quantizeRows(sort.slotOfRow, pointers);
    if (m.y) copyRows(sort.slotOfRow, pointers);
  }

 private:
  std::int64_t slots() const { return m.indices.spec.numElements(); }
  std::int64_t numRows() const { return m.form.numRows(slots()); }
  std::int64_t terms() const { return m.indices.spec.cols(); }
  std::size_t scratch() const { return slotSortScratch(slots(), m.form.numExperts); }
  bool areRowsMade() const { return m.y || m_copies; }

  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const Result<Permutation> made = permutationOf(m.form, readCounts(m.indices, pointers, m_device));
    if (!made) throw std::runtime_error(made.error().message);
  }

  void copyRows(const std::int32_t* slotOfRow, Pointers pointers) const {
    const MovedRows rows{.from = m.x.at(pointers),
                         .to = m.y.at(pointers),
                         .element = elementOf(m.x.spec.dtype),
                         .width = m.x.spec.cols(),
                         .rowsFrom = m.x.spec.rows(),
                         .rowsTo = numRows(),
                         .terms = terms()};
    launchCopiedRows(rows, slotOfRow, m_device.stream);
  }

  /// The rows are stored for each consumer anew: one of them is the rule.
  void quantizeRows(const std::int32_t* slotOfRow, Pointers pointers) {
    const std::int64_t rowBytes = m.x.spec.cols() * sizeBytes(m.x.spec.dtype);
    std::byte* const y = m.y.at(pointers);
    std::vector<PermutedQuantization> tasks;
    for (const StepCopies::GroupPair& group : m_copies->groupPairs(pointers, m_device))
      if (group.rows > 0 || m_copies->kind() == device::CopyKind::Tensor)  // its scale is written
        tasks.push_back({.x = m.x.at(pointers),
                         .element = elementOf(m.x.spec.dtype),
                         .slotOfRow = slotOfRow + group.firstRow,
                         .terms = static_cast<std::int32_t>(terms()),
                         .rows = group.rows,
                         .cols = m.x.spec.cols(),
                         .y = y ? y + group.firstRow * rowBytes : nullptr,
                         .copies = group.copies});
    launchPermutedQuantize(tasks, m_copies->kind(), m_device.stream);
  }

  PermuteStep m;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

class PermuteBackward final : public Kernel {
 public:
  PermuteBackward(PermuteStep step, const DeviceContext& device) : m(std::move(step)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    const MovedRows rows{.from = m.dy.at(pointers),
                         .to = m.dx.at(pointers),
                         .element = elementOf(m.dx.spec.dtype),
                         .width = m.dx.spec.cols(),
                         .rowsFrom = m.dy.spec.rows(),
                         .rowsTo = m.dx.spec.rows(),
                         .terms = m.map.spec.cols()};
    launchRowSums(rows, countsAt(m.map, pointers), m_device.stream);
  }

 private:
  PermuteStep m;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compilePermute(const CompileRequest& request) {
  Result<PermuteStep> step = permuteStep(request);
  if (!step) return step.error();
  if (request.step.phase == Phase::Forward) {
    Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
    if (!copies) return copies.error();
    return std::unique_ptr<Kernel>(
        std::make_unique<PermuteForward>(std::move(*step), std::move(*copies), request.device));
  }
  return std::unique_ptr<Kernel>(std::make_unique<PermuteBackward>(std::move(*step), request.device));
}

Verdict supports(const KernelQuery& query) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Node& node = query.graph.node(query.members[0]);
  const std::int64_t slots = query.graph.value(node.inputs[PermuteForm::kIndices]).spec.numElements();
  if (permuteForm(node.attributes).numRows(slots) < kMost) return Verdict::yes();
  return Verdict::no("MoEPermute: y has 2^31 rows or more.");
}

}  // namespace moe_permute_parts
}  // namespace

KernelDef moe_permute() {
  using namespace moe_permute_parts;
  return {
      .name = "MoEPermute",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = compilePermute,
      .supportsCopies = canMakeCopies,
  };
}

}  // namespace fuseline::cuda::kernels
