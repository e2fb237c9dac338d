// Kernel "MoEPermute": a counting sort of the slots, then a copy of each row; backward adds the rows of each token.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/moe_form.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/moved_rows.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fuseline::cpu::kernels {

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
        m_threads(request.settings.threads) {}

  void run(Pointers pointers, std::byte*) override {
    const std::span<const std::int64_t> indices = integersOf(m_indices, pointers);
    const Result<Permutation> made = permutationOf(m_form, indices);
    if (!made) throw std::runtime_error(made.error().message);
    if (m_map) std::ranges::copy(made->rowIdMap, reinterpret_cast<std::int64_t*>(m_map.at(pointers)));
    if (m_sizes) std::ranges::copy(made->splitSizes, reinterpret_cast<std::int64_t*>(m_sizes.at(pointers)));
    if (!m_y) return;
    const std::vector<std::int64_t> slots = *slotsOfRows(made->rowIdMap, m_y.spec.rows());
    copyRows({m_x.at(pointers), m_y.at(pointers), m_x.spec.cols(), m_x.spec.dtype, m_threads}, slots,
             m_indices.spec.cols());
  }

 private:
  PermuteForm m_form;
  Binding m_x, m_indices, m_y, m_map, m_sizes;
  int m_threads;
};

class PermuteBackward final : public Kernel {
 public:
  PermuteBackward(Binding map, Binding dy, Binding dx, int threads)
      : m_map(std::move(map)), m_dy(std::move(dy)), m_dx(std::move(dx)), m_threads(threads) {}

  std::size_t workspaceBytes() const override { return movedRowsBytes(m_dx.spec.cols(), m_threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    sumRows({m_dy.at(pointers), m_dx.at(pointers), m_dx.spec.cols(), m_dx.spec.dtype, m_threads},
            integersOf(m_map, pointers), m_map.spec.cols(), {}, workspace);
  }

 private:
  Binding m_map, m_dy, m_dx;
  int m_threads;
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
  return std::unique_ptr<Kernel>(std::make_unique<PermuteBackward>(*map, *dy, *dx, request.settings.threads));
}

}  // namespace

KernelDef moe_permute() {
  return {
      .name = "MoEPermute",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cpu::kernels
