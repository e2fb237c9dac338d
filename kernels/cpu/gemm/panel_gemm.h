// A GEMM whose result goes through an elementwise program, one panel of rows at a time.
//
// The GEMM's result is rounded as the separate op would round it. It is computed in place of a result that equals it,
// such as an activation input that is saved for backward; if all of it is one panel, in the memory of the program's
// result, which overwrites it; otherwise in scratch memory that stays in the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/cpu/elementwise/strip_engine.h"
#include "kernels/cpu/gemm/gemm.h"

#include <functional>
#include <optional>
#include <vector>

namespace fuseline::cpu {

/// An operand of the program other than the sums. All but row vectors and scalars advance with the panel.
struct PanelOperand {
  OperandKey key;
  Binding binding;
  Access access = Access::Full;
};

class PanelGemm {
 public:
  /// problem.cType is the dtype of the sums. The program reads them as `sums`, in one lane of problem.n columns or,
  /// with a gated op, in two lanes of problem.n / 2; it must not contain column sums. `bias`: added by the GEMM if
  /// problem.biasType is set. `drained`: the result whose rows go to a sink.
  PanelGemm(GemmProblem problem, const OperandKey& sums, ElementwiseProgram program, std::vector<PanelOperand> operands,
            int threads, Binding bias = {}, std::optional<OperandKey> drained = std::nullopt);

  std::size_t workspaceBytes() const;
  /// sink: takes the rows of the drained result.
  void run(const std::byte* a, const std::byte* b, Pointers pointers, std::byte* workspace,
           const RowSink* sink = nullptr);

  /// Returns rows [first, first + count) of A, [count, K]; called once per panel, in order.
  using PanelSource = std::function<const std::byte*(std::int64_t first, std::int64_t count)>;
  void run(const PanelSource& a, const std::byte* b, Pointers pointers, std::byte* workspace,
           const RowSink* sink = nullptr);
  std::int64_t panelRows() const { return m_gemm.problem().maxPanelRows; }

 private:
  StripOperand operandOf(const OperandKey& key) const;
  int slotOf(const OperandKey& key) const;
  std::size_t sumsBytes() const;
  const PanelOperand* target() const;
  std::byte* placeOfSums(const std::byte* a, Pointers pointers, std::byte* workspace) const;

  OperandKey m_sums;
  std::vector<PanelOperand> m_operands;
  std::optional<OperandKey> m_drained;
  /// Index into m_operands: the result that equals the sums; -1: there is none.
  int m_target = -1;
  Binding m_bias;
  ElementwiseProgram m_program;  // the remaining work on the sums; without stores: none
  Gemm m_gemm;
  /// Index into m_operands: the result that can overwrite the sums; -1: there is none.
  int m_successor = -1;
  StripEngine m_engine;
};

}  // namespace fuseline::cpu
