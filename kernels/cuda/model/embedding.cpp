// Kernel "Embedding": looks rows up; backward sums their gradients.
// The numbers of rows are data. They stay the same from run to run, as all that is bound to an executor: the host
// checks them in the first run.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding_form.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/embedding_launch.h"

#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cuda::kernels {

KernelDef embedding();

namespace {

struct EmbeddingParts {
  EmbeddingForm form;
  Binding ids, weight, y;
  Binding dy, dTable, dWeight;  // of backward
};

class EmbeddingKernel final : public Kernel {
 public:
  EmbeddingKernel(EmbeddingParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  std::size_t workspaceBytes() const override {
    return m.dy ? embeddingScratch(m.ids.spec.numElements()) * sizeof(std::int32_t) : 0;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    checkOnce(pointers);
    const EmbeddingTask task{.ids = countsAt(m.ids, pointers),
                             .count = m.ids.spec.numElements(),
                             .tokens = m.form.usesPositions ? m.ids.spec.cols() : 0,
                             .numRows = m.form.numRows,
                             .width = m.form.width,
                             .padding = m.form.paddingIndex.value_or(-1),
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
  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true) || m.form.usesPositions) return;
    const std::vector<std::int64_t> ids = readCounts(m.ids, pointers, m_device);
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (!m.form.hasRow(ids[i]))
        throw std::runtime_error(missingRowText(m.form, static_cast<std::int64_t>(i), ids[i]));
  }

  EmbeddingParts m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

Result<std::unique_ptr<Kernel>> compileEmbedding(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> ids = requireOperand(request, {0, OperandKind::Input, 0});
  if (!ids) return ids.error();
  EmbeddingParts parts{.form = embeddingForm(request.member(0).attributes), .ids = *ids};
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
