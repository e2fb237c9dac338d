// RowCopies: a step writes the quantized tensors of its own result, or finds its amax, while the rows are computed,
// block by block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/elementwise/row_sink.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"

#include <optional>
#include <vector>

namespace fuseline::cpu {

/// Yes if the kernel's rows are those of the tensor; few rows leave threads without work, as results must not depend on
/// their number. query: with copies.
Verdict canMakeRowCopies(const KernelQuery& query);

class RowCopies {
 public:
  /// request.step.copies is not empty; all of them belong to one result.
  explicit RowCopies(const CompileRequest& request) : RowCopies(request, request.step.copies) {}
  /// Some of the step's copies, all of one result.
  RowCopies(const CompileRequest& request, std::vector<QuantizeWork> works);

  const OperandKey& source() const { return m_works.front().source; }
  /// Spec of the rows that the kernel computes: that of the result, or float32 if it is quantized before it is rounded.
  const TensorSpec& spec() const { return m_spec; }
  std::size_t scratchBytes() const;

  /// The sink of one run. scratch: scratchBytes().
  const RowSink& begin(Pointers pointers, std::byte* scratch);
  void finish();

 private:
  void take(int thread, std::int64_t first, std::int64_t count, const std::byte* rows);
  /// Does the kernel make the rows in their place in the result?
  bool isMadeInPlace() const { return m_sourceIndex >= 0 && !m_works.front().isUnrounded; }
  void store(std::int64_t first, std::int64_t count, const std::byte* rows) const;
  void open(const QuantizeWork& work, Pointers pointers);
  CopyRows open(const QuantizeWork& work, const QuantizePiece& piece) const;

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
  std::vector<QuantizeWork> m_works;
  TensorSpec m_spec;
  int m_sourceIndex;          // of the result; -1: it is not stored
  std::byte* m_to = nullptr;  // destination of rows that are not computed in place, in the current run
  int m_threads;
  bool m_needsAmax = false;
  RowSink m_sink;
  std::vector<CopyRows> m_copies;      // by work, in the current run
  std::vector<std::byte*> m_amaxesTo;  // histories and amaxes in the current run
  std::vector<float> m_amaxes;         // by thread
};

/// Nothing for a step without fused quantization.
std::optional<RowCopies> rowCopiesOf(const CompileRequest& request);

}  // namespace fuseline::cpu
