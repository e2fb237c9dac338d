// Updates parameter by parameter in double precision.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/optimizer_reference.h"

#include "core/numerics/adamw.h"
#include "core/tensor/tensor.h"

#include <cmath>
#include <vector>

namespace fuseline {

namespace {

AdamWTerms<double> termsOf(const AdamW& options) {
  return {.beta1Rest = 1.0 - options.beta1,
          .beta2 = options.beta2,
          .beta2Rest = 1.0 - options.beta2,
          .decay = 1.0 - options.lr * options.weightDecay,
          .eps = options.eps};
}

double rootOf(double x) { return std::sqrt(x); }

class AdamWReference final : public Kernel {
 public:
  AdamWReference(const Graph& graph, const Plan& plan, const Step& step)
      : m_options(*graph.optimizer()), m_numParameters(trainedParameters(graph).size()), m_plan(plan), m_step(step) {}

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    std::int64_t& step = *reinterpret_cast<std::int64_t*>(pointers[0]);
    ++step;
    const auto corrections = adamWCorrections<double>(m_options.lr, m_options.beta1, m_options.beta2, step, rootOf);
    for (std::size_t member = 0; member < m_numParameters; ++member)
      update(static_cast<int>(member), corrections, pointers);
  }

 private:
  /// An operand's numbers, and where they are; empty without elements.
  struct Numbers {
    DType dtype = DType::F32;
    std::byte* data = nullptr;
    std::vector<double> values = {};

    void store() const {
      if (data) encode(values, dtype, data);
    }
  };

  Numbers numbersOf(const OperandKey& key, std::span<std::byte* const> pointers) const {
    const StepOperand* const operand = m_step.find(key);
    if (!operand) return {};
    const TensorSpec& spec = m_plan.spec(*operand);
    Numbers numbers{.dtype = spec.dtype, .data = pointers[static_cast<std::size_t>(operand - m_step.operands.data())]};
    numbers.values.resize(static_cast<std::size_t>(spec.numElements()));
    if (numbers.data) decode(numbers.data, spec.dtype, numbers.values);
    return numbers;
  }

  void update(int member, const AdamWCorrections<double>& corrections, std::span<std::byte* const> pointers) const {
    const OperandKey gradientKey{member, OperandKind::GradParameter, 0};
    Numbers weight = numbersOf({member, OperandKind::Parameter, 0}, pointers);
    Numbers gradient = numbersOf(gradientKey, pointers);
    Numbers m = numbersOf({member, OperandKind::Residual, 0}, pointers);
    Numbers v = numbersOf({member, OperandKind::Residual, 1}, pointers);
    Numbers master = numbersOf({member, OperandKind::Residual, 2}, pointers);
    std::vector<double>& w = master.data ? master.values : weight.values;
    const AdamWTerms<double> terms = termsOf(m_options);
    for (std::size_t i = 0; i < w.size(); ++i)
      updateByAdamW(terms, corrections, gradient.values[i], w[i], m.values[i], v.values[i], rootOf);
    if (master.data) master.store();
    weight.values = w;
    weight.store();
    m.store();
    v.store();
    if (m_step.find(gradientKey)->access == OperandAccess::Read) return;
    gradient.values.assign(gradient.values.size(), 0.0);
    gradient.store();
  }

  AdamW m_options;
  std::size_t m_numParameters;
  const Plan& m_plan;
  const Step& m_step;
};

}  // namespace

std::unique_ptr<Kernel> makeAdamWReference(const Graph& graph, const Plan& plan, const Step& step) {
  return std::make_unique<AdamWReference>(graph, plan, step);
}

}  // namespace fuseline
