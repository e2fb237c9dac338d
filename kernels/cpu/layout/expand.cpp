// Kernel "Expand": the same columns again and again, and the sum of their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"
#include "kernels/cpu/model/moved_rows.h"

#include <numeric>
#include <utility>
#include <vector>

namespace fuseline::cpu::kernels {

KernelDef expand();

namespace {

class ExpandBackward final : public Kernel {
 public:
  ExpandBackward(Binding dy, Binding dx, int threads)
      : m_dy(std::move(dy)),
        m_dx(std::move(dx)),
        m_threads(threads),
        m_rows(static_cast<std::size_t>(m_dy.spec.rows())) {
    std::iota(m_rows.begin(), m_rows.end(), std::int64_t{0});
  }

  std::size_t workspaceBytes() const override { return movedRowsBytes(m_dy.spec.cols(), m_threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::int64_t copies = m_dy.spec.shape[m_dy.spec.shape.size() - 2];
    sumRows({.from = m_dy.at(pointers),
             .to = m_dx.at(pointers),
             .width = m_dy.spec.cols(),
             .dtype = m_dy.spec.dtype,
             .threads = m_threads,
             .fromStride = m_dy.rowStride},
            m_rows, copies, {}, workspace);
  }

 private:
  Binding m_dy, m_dx;
  int m_threads;
  std::vector<std::int64_t> m_rows;  // of dy, in their order
};

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> dy = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const Result<Binding> dx = requireOperand(request, {0, OperandKind::GradInput, 0});
  if (!dx) return dx.error();
  return std::unique_ptr<Kernel>(std::make_unique<ExpandBackward>(*dy, *dx, request.settings.threads));
}

}  // namespace

KernelDef expand() {
  return {
      .name = "Expand",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = byPhase([](const CompileRequest& request) { return makeColumnCopy(request, readExpand(request)); },
                         compileBackward),
  };
}

}  // namespace fuseline::cpu::kernels
