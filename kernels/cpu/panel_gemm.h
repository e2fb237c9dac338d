// A matrix product whose result goes through an elementwise program, panel of rows by panel of rows.
//
// The panel's sums stay in the cache: the program reads them there, and only what it stores reaches memory. The sums
// are float32, so that everything is rounded once, unless the caller wants them as the separate ops would have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/step_operand.h"
#include "kernels/cpu/strip_engine.h"

#include <functional>
#include <vector>

namespace fuseline::cpu {

/// An operand of the program besides the sums. Full ones advance with the panel.
struct PanelOperand {
  OperandKey key;
  Binding binding;
  bool isFull = true;
};

class PanelGemm {
 public:
  /// problem.cType is the dtype of the sums. The program reads them as `sums`, in one lane of problem.n columns; it
  /// must not contain column sums.
  PanelGemm(GemmProblem problem, const OperandKey& sums, const ElementwiseProgram& program,
            std::vector<PanelOperand> operands, int threads);

  std::size_t workspaceBytes() const;
  void run(const std::byte* a, const std::byte* b, Pointers pointers, std::byte* workspace);

  /// Gives rows [first, first + count) of A, [count, K]; called once a panel, in order.
  using PanelSource = std::function<const std::byte*(std::int64_t first, std::int64_t count)>;
  void run(const PanelSource& a, const std::byte* b, Pointers pointers, std::byte* workspace);
  std::int64_t panelRows() const { return m_gemm.problem().maxPanelRows; }

 private:
  StripOperand operandOf(const OperandKey& key) const;

  OperandKey m_sums;
  std::vector<PanelOperand> m_operands;
  Gemm m_gemm;
  StripEngine m_engine;
};

}  // namespace fuseline::cpu
