// Kernel "MoEPermute": a counting sort of the slots, then a copy of each row; backward adds the rows of each token.
// The host checks the experts in the first run: they stay the same from run to run, as all that a run computes.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/moe_form.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/moved_rows_launch.h"

#include <stdexcept>
#include <utility>

namespace fuseline::cuda::kernels {

KernelDef moe_permute();

namespace {

class PermuteForward final : public Kernel {
 public:
  PermuteForward(const CompileRequest& request, Binding x, Binding indices)
      : m_form(permuteForm(request.member(0).attributes)),
        m_x(std::move(x)),
        m_indices(std::move(indices)),
        m_y(findOperand(request, {0, OperandKind::Output, 0})),
        m_map(findOperand(request, {0, OperandKind::Output, PermuteForm::kRowIdMap})),
        m_sizes(findOperand(request, {0, OperandKind::Output, PermuteForm::kSplitSizes})),
        m_device(request.device) {}

  std::size_t workspaceBytes() const override {
    return (scratch() + static_cast<std::size_t>(m_y ? m_y.spec.rows() : 0)) * sizeof(std::int32_t);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    checkOnce(pointers);
    auto* const memory = reinterpret_cast<std::int32_t*>(workspace);
    const SlotSort sort{.experts = countsAt(m_indices, pointers),
                        .slots = slots(),
                        .numExperts = m_form.numExperts,
                        .alignSize = m_form.alignSize,
                        .rows = m_form.numRows(slots()),
                        .scratch = memory,
                        .rowOfSlot = reinterpret_cast<std::int64_t*>(m_map.at(pointers)),
                        .splitSizes = reinterpret_cast<std::int64_t*>(m_sizes.at(pointers)),
                        .slotOfRow = m_y ? memory + scratch() : nullptr};
    launchSlotSort(sort, m_device.stream);
    if (!m_y) return;
    const MovedRows rows{.from = m_x.at(pointers),
                         .to = m_y.at(pointers),
                         .element = elementOf(m_x.spec.dtype),
                         .width = m_x.spec.cols(),
                         .rowsFrom = m_x.spec.rows(),
                         .rowsTo = m_y.spec.rows(),
                         .terms = m_indices.spec.cols()};
    launchCopiedRows(rows, sort.slotOfRow, m_device.stream);
  }

 private:
  std::int64_t slots() const { return m_indices.spec.numElements(); }
  std::size_t scratch() const { return slotSortScratch(slots(), m_form.numExperts); }

  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const Result<Permutation> made = permutationOf(m_form, readCounts(m_indices, pointers, m_device));
    if (!made) throw std::runtime_error(made.error().message);
  }

  PermuteForm m_form;
  Binding m_x, m_indices, m_y, m_map, m_sizes;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

class PermuteBackward final : public Kernel {
 public:
  PermuteBackward(Binding map, Binding dy, Binding dx, const DeviceContext& device)
      : m_map(std::move(map)), m_dy(std::move(dy)), m_dx(std::move(dx)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    const MovedRows rows{.from = m_dy.at(pointers),
                         .to = m_dx.at(pointers),
                         .element = elementOf(m_dx.spec.dtype),
                         .width = m_dx.spec.cols(),
                         .rowsFrom = m_dy.spec.rows(),
                         .rowsTo = m_dx.spec.rows(),
                         .terms = m_map.spec.cols()};
    launchRowSums(rows, countsAt(m_map, pointers), m_device.stream);
  }

 private:
  Binding m_map, m_dy, m_dx;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> indices = requireOperand(request, {0, OperandKind::Input, PermuteForm::kIndices});
  if (!indices) return indices.error();
  return std::unique_ptr<Kernel>(std::make_unique<PermuteForward>(request, *x, *indices));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> map = requireOperand(request, {0, OperandKind::Output, PermuteForm::kRowIdMap});
  if (!map) return map.error();
  const Result<Binding> dy = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const Result<Binding> dx = requireOperand(request, {0, OperandKind::GradInput, 0});
  if (!dx) return dx.error();
  return std::unique_ptr<Kernel>(std::make_unique<PermuteBackward>(*map, *dy, *dx, request.device));
}

Verdict supports(const KernelQuery& query) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Node& node = query.graph.node(query.members[0]);
  const std::int64_t slots = query.graph.value(node.inputs[PermuteForm::kIndices]).spec.numElements();
  if (permuteForm(node.attributes).numRows(slots) < kMost) return Verdict::yes();
  return Verdict::no("MoEPermute: y has 2^31 rows or more.");
}

}  // namespace

KernelDef moe_permute() {
  return {
      .name = "MoEPermute",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cuda::kernels
