// Kernel "Embedding": copies rows; backward sorts positions by row and sums each row's in their order, so that the bits
// do not depend on the number of threads.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding_form.h"
#include "core/runtime/step_operand.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/row_numbers.h"
#include "kernels/cpu/norm/norm_functions.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef embedding();

namespace {
namespace embedding_parts {

/// Bytes that are worth waking a thread for.
constexpr std::int64_t kBytesPerThread = 1 << 16;

int threadsFor(std::int64_t bytes, int most) {
  return static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesPerThread, 1, most));
}

const std::int64_t* idsAt(const Binding& binding, Pointers pointers) {
  return reinterpret_cast<const std::int64_t*>(binding.at(pointers));
}

class EmbeddingForward final : public Kernel {
 public:
  EmbeddingForward(RowNumbers rows, Binding ids, Binding weight, Binding y, int threads)
      : m_rows(rows), m_ids(std::move(ids)), m_weight(std::move(weight)), m_y(std::move(y)), m_threads(threads) {}

  void run(Pointers pointers, std::byte*) override {
    const std::int64_t* const ids = idsAt(m_ids, pointers);
    m_rows.check(ids);
    const std::int64_t rowBytes = m_y.spec.cols() * sizeBytes(m_y.spec.dtype);
    const std::byte* const weight = m_weight.at(pointers);
    std::byte* const y = m_y.at(pointers);
    const int threads = threadsFor(m_y.spec.bytes(), m_threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < m_rows.count(); ++i)
      std::memcpy(y + i * rowBytes, weight + m_rows.at(ids, i) * rowBytes, static_cast<std::size_t>(rowBytes));
  }

 private:
  RowNumbers m_rows;
  Binding m_ids, m_weight, m_y;
  int m_threads;
};

struct BackwardParts {
  EmbeddingForm form;
  Binding ids, dy, dTable, dWeight;
  int threads = 1;
};

class EmbeddingBackward final : public Kernel {
 public:
  EmbeddingBackward(BackwardParts parts, RowNumbers rows) : m(std::move(parts)), m_rows(rows) {}

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(m.threads) * 2 * static_cast<std::size_t>(paddedWidth(m.form.width)) *
           sizeof(float);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    begin(pointers);
    if (!m.dy) return;
    sortPositions(idsAt(m.ids, pointers));
    const auto numRows = static_cast<std::int64_t>(m_firsts.size()) - 1;
    const int threads = threadsFor(m.dy.spec.bytes(), m.threads);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < numRows; ++i)
      addRow(m_firsts[static_cast<std::size_t>(i)], m_firsts[static_cast<std::size_t>(i + 1)], pointers,
             reinterpret_cast<float*>(workspace) + omp_get_thread_num() * 2 * paddedWidth(m.form.width));
  }

 private:
  /// The gradient of the table itself, or 0.
  void begin(Pointers pointers) const {
    const auto bytes = static_cast<std::size_t>(m.dWeight.spec.bytes());
    if (bytes == 0) return;
    if (m.dTable)
      std::memcpy(m.dWeight.at(pointers), m.dTable.at(pointers), bytes);
    else
      std::memset(m.dWeight.at(pointers), 0, bytes);
  }

  void sortPositions(const std::int64_t* ids) {
    m_rows.check(ids);
    m_sorted.clear();
    for (std::int64_t i = 0; i < m_rows.count(); ++i)
      if (const std::int64_t row = m_rows.at(ids, i); row != m.form.paddingIndex) m_sorted.emplace_back(row, i);
    std::ranges::sort(m_sorted);
    m_firsts.clear();
    for (std::size_t i = 0; i < m_sorted.size(); ++i)
      if (i == 0 || m_sorted[i].first != m_sorted[i - 1].first) m_firsts.push_back(i);
    m_firsts.push_back(m_sorted.size());
  }

  /// own: two rows in float32.
  void addRow(std::size_t first, std::size_t last, Pointers pointers, float* own) const {
    const std::int64_t width = m.form.width;
    const std::int64_t padded = paddedWidth(width);
    const HeadRowFunctions& rows = headRowFunctions(m.dWeight.spec.dtype);
    const AddFunction add = addFunction(DType::F32);
    const auto rowAt = [&](const Binding& binding, std::int64_t row) {
      return RowsOf{.data = binding.at(pointers) + row * width * sizeBytes(binding.spec.dtype), .stride = width};
    };
    const RowsOf sum = rowAt(m.dWeight, m_sorted[first].first);
    rows.read(sum, 1, width, 1.0F, own, padded);
    for (std::size_t i = first; i < last; ++i) {
      rows.read(rowAt(m.dy, m_sorted[i].second), 1, width, 1.0F, own + padded, padded);
      add(own, own + padded, own, static_cast<std::size_t>(width));
    }
    rows.write(own, padded, 1, width, nullptr, 1.0F, sum);
  }

  BackwardParts m;
  RowNumbers m_rows;
  std::vector<std::pair<std::int64_t, std::int64_t>> m_sorted;  // row of the table, position
  std::vector<std::size_t> m_firsts;                            // of each row in m_sorted, and the end
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request, const EmbeddingForm& form) {
  const Result<Binding> ids = requireOperand(request, {0, OperandKind::Input, 0});
  if (!ids) return ids.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<EmbeddingForward>(RowNumbers(form, ids->spec), *ids, *weight, *y, request.settings.threads));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request, const EmbeddingForm& form) {
  const Result<Binding> ids = requireOperand(request, {0, OperandKind::Input, 0});
  if (!ids) return ids.error();
  const Result<Binding> dWeight = requireOperand(request, {0, OperandKind::GradParameter, 0});
  if (!dWeight) return dWeight.error();
  BackwardParts parts{.form = form,
                      .ids = *ids,
                      .dy = findOperand(request, {0, OperandKind::GradOutput, 0}),
                      .dTable = findOperand(request, {0, OperandKind::GradOutput, 1}),
                      .dWeight = *dWeight,
                      .threads = request.settings.threads};
  return std::unique_ptr<Kernel>(std::make_unique<EmbeddingBackward>(std::move(parts), RowNumbers(form, ids->spec)));
}

}  // namespace embedding_parts
}  // namespace

KernelDef embedding() {
  using namespace embedding_parts;
  return {
      .name = "Embedding",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            const EmbeddingForm form = embeddingForm(request.member(0).attributes);
            return request.step.phase == Phase::Forward ? compileForward(request, form)
                                                        : compileBackward(request, form);
          },
  };
}

}  // namespace fuseline::cpu::kernels
