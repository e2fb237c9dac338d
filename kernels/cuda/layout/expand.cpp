// Kernel "Expand": the same columns again and again, and the sum of their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/layout/column_copy.h"
#include "kernels/cuda/layout/expand_launch.h"

#include <utility>

namespace fuseline::cuda::kernels {

KernelDef expand();

namespace {

class ExpandBackward final : public Kernel {
 public:
  ExpandBackward(Binding dy, Binding dx, Stream stream) : m_dy(std::move(dy)), m_dx(std::move(dx)), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    launchCopySums({.dy = m_dy.at(pointers),
                    .dx = m_dx.at(pointers),
                    .element = elementOf(m_dx.spec.dtype),
                    .count = m_dx.spec.numElements(),
                    .width = m_dx.spec.cols(),
                    .copies = m_dy.spec.shape[m_dy.spec.shape.size() - 2],
                    .stride = m_dy.rowStride > 0 ? m_dy.rowStride : m_dy.spec.cols()},
                   m_stream);
  }

 private:
  Binding m_dy, m_dx;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> dy = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const Result<Binding> dx = requireOperand(request, {0, OperandKind::GradInput, 0});
  if (!dx) return dx.error();
  return std::unique_ptr<Kernel>(std::make_unique<ExpandBackward>(*dy, *dx, request.device.stream));
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

}  // namespace fuseline::cuda::kernels
