// Kernel "Embedding": looks rows up; backward sums their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/checked_rows.h"
#include "kernels/cuda/model/embedding_launch.h"

#include <utility>

namespace fuseline::cuda::kernels {

KernelDef embedding();

namespace {

struct EmbeddingParts {
  CheckedRows rows;
  Binding weight, y;
  Binding dy, dTable, dWeight;  // of backward
};

class EmbeddingKernel final : public Kernel {
 public:
  EmbeddingKernel(EmbeddingParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  std::size_t workspaceBytes() const override {
    return m.dy ? embeddingScratch(m.rows.count()) * sizeof(std::int32_t) : 0;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const EmbeddingTask task{.ids = m.rows.at(pointers, m_device),
                             .count = m.rows.count(),
                             .tokens = m.rows.tokens(),
                             .numRows = m.rows.form().numRows,
                             .width = m.rows.form().width,
                             .padding = m.rows.form().paddingIndex.value_or(-1),
                             .element = elementOf(m.dWeight ? m.dWeight.spec.dtype : m.weight.spec.dtype),
                             .weight = m.weight.at(pointers),
                             .y = m.y.at(pointers),
                             .dy = m.dy.at(pointers),
                             .dTable = m.dTable.at(pointers),
                             .dWeight = m.dWeight.at(pointers)};
    if (m.dWeight)
      launchEmbeddingGradient(task, reinterpret_cast<std::int32_t*>(workspace), m_device.stream);
    else
      launchEmbedding(task, m_device.stream);
  }

 private:
  EmbeddingParts m;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compileEmbedding(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> ids = requireOperand(request, {0, OperandKind::Input, 0});
  if (!ids) return ids.error();
  EmbeddingParts parts{.rows = CheckedRows(embeddingForm(request.member(0).attributes), *ids)};
  if (isForward) {
    const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
    if (!weight) return weight.error();
    const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
    if (!y) return y.error();
    parts.weight = *weight;
    parts.y = *y;
  } else {
    const Result<Binding> dWeight = requireOperand(request, {0, OperandKind::GradParameter, 0});
    if (!dWeight) return dWeight.error();
    parts.dWeight = *dWeight;
    parts.dy = findOperand(request, {0, OperandKind::GradOutput, 0});
    parts.dTable = findOperand(request, {0, OperandKind::GradOutput, 1});
  }
  return std::unique_ptr<Kernel>(std::make_unique<EmbeddingKernel>(std::move(parts), request.device));
}

}  // namespace

KernelDef embedding() {
  return {
      .name = "Embedding",
      .phases = {Phase::Forward, Phase::Backward},
      .supports =
          [](const KernelQuery& query) {
            constexpr std::int64_t kMost = std::int64_t{1} << 31;
            const Node& node = query.graph.node(query.members[0]);
            const std::int64_t count = query.graph.value(node.inputs[0]).spec.numElements();
            return count < kMost ? Verdict::yes() : Verdict::no("Embedding: x has 2^31 elements or more.");
          },
      .compile = compileEmbedding,
  };
}

}  // namespace fuseline::cuda::kernels
