// Kernel "MoEPermute": a counting sort of the slots, then a copy of each row, which may be quantized on the way;
// backward adds the rows of each token.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/moved_rows.h"
#include "kernels/cpu/quantize/group_copies.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fuseline::cpu::kernels {

KernelDef moe_permute();

namespace {

class PermuteForward final : public Kernel {
 public:
  PermuteForward(PermuteStep step, const CompileRequest& request)
      : m(std::move(step)), m_copies(request), m_threads(request.settings.threads) {}

  std::size_t workspaceBytes() const override { return m.y ? 0 : m_copies.scratchBytes(); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::span<const std::int64_t> indices = integersOf(m.indices, pointers);
    const Result<Permutation> made = permutationOf(m.form, indices);
    if (!made) throw std::runtime_error(made.error().message);
    if (m.map) std::ranges::copy(made->rowIdMap, reinterpret_cast<std::int64_t*>(m.map.at(pointers)));
    if (m.sizes) std::ranges::copy(made->splitSizes, reinterpret_cast<std::int64_t*>(m.sizes.at(pointers)));
    if (!m.y && m_copies.isEmpty()) return;
    const std::vector<std::int64_t> slots = *slotsOfRows(made->rowIdMap, m.form.numRows(std::ssize(indices)));
    const MovedRows rows{m.x.at(pointers), m.y.at(pointers), m.x.spec.cols(), m.x.spec.dtype, m_threads};
    if (m_copies.isEmpty()) return copyRows(rows, slots, m.indices.spec.cols());
    m_copies.run(pointers, rows.to, workspace, [&](std::int64_t first, std::int64_t count, std::byte* to) {
      copyRows({rows.from, to, rows.width, rows.dtype},
               std::span(slots).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
               m.indices.spec.cols());
    });
  }

 private:
  PermuteStep m;
  GroupCopies m_copies;
  int m_threads;
};

class PermuteBackward final : public Kernel {
 public:
  PermuteBackward(PermuteStep step, int threads) : m(std::move(step)), m_threads(threads) {}

  std::size_t workspaceBytes() const override { return movedRowsBytes(m.dx.spec.cols(), m_threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    sumRows({m.dy.at(pointers), m.dx.at(pointers), m.dx.spec.cols(), m.dx.spec.dtype, m_threads},
            integersOf(m.map, pointers), m.map.spec.cols(), {}, workspace);
  }

 private:
  PermuteStep m;
  int m_threads;
};

Result<std::unique_ptr<Kernel>> compilePermute(const CompileRequest& request) {
  Result<PermuteStep> step = permuteStep(request);
  if (!step) return step.error();
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<PermuteForward>(std::move(*step), request));
  return std::unique_ptr<Kernel>(std::make_unique<PermuteBackward>(std::move(*step), request.settings.threads));
}

}  // namespace

KernelDef moe_permute() {
  return {
      .name = "MoEPermute",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compilePermute,
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu::kernels
