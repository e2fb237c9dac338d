// A matrix product whose result goes through an elementwise program, panel of rows by panel of rows.
//
// Where a result has the size and dtype of the sums, the product is computed whole, rounded as the separate op would
// round it, into that result's memory, and the program works there in place: never more work than the separate ops.
// Otherwise the sums of a panel stay in the cache, where the program reads them.
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

/// The operands that the product itself adds, where the problem has them.
struct ProductTerms {
  Binding bias;
  Binding addend;
};

class PanelGemm {
 public:
  /// problem.cType is the dtype of the sums. The program reads them as `sums`, in one lane of problem.n columns; it
  /// must not contain column sums.
  PanelGemm(GemmProblem problem, const OperandKey& sums, ElementwiseProgram program, std::vector<PanelOperand> operands,
            int threads, ProductTerms terms = {});

  std::size_t workspaceBytes() const;
  void run(const std::byte* a, const std::byte* b, Pointers pointers, std::byte* workspace);

  /// Gives rows [first, first + count) of A, [count, K]; called once a panel, in order.
  using PanelSource = std::function<const std::byte*(std::int64_t first, std::int64_t count)>;
  void run(const PanelSource& a, const std::byte* b, Pointers pointers, std::byte* workspace);
  std::int64_t panelRows() const { return m_gemm.problem().maxPanelRows; }

 private:
  StripOperand operandOf(const OperandKey& key) const;
  std::size_t sumsBytes() const;
  const PanelOperand* target() const;

  OperandKey m_sums;
  std::vector<PanelOperand> m_operands;
  /// Index into m_operands: the result whose memory takes the sums first; -1: they have memory of their own.
  int m_target = -1;
  ProductTerms m_terms;
  ElementwiseProgram m_program;  // what is left to do on the sums; without stores: nothing
  Gemm m_gemm;
  StripEngine m_engine;
};

}  // namespace fuseline::cpu
