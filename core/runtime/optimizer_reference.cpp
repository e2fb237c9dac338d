// Updates parameter by parameter in double precision.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/optimizer_reference.h"

#include "core/numerics/adamw.h"
#include "core/tensor/tensor.h"

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace fuseline {

namespace {

double rootOf(double x) { return std::sqrt(x); }

/// An operand's numbers, and where they are; empty without elements.
struct Numbers {
  DType dtype = DType::F32;
  std::byte* data = nullptr;
  std::vector<double> values = {};

  void store() const {
    if (data) encode(values, dtype, data);
  }
};

using OperandPointers = std::span<std::byte* const>;

Numbers numbersOf(const Plan& plan, const Step& step, const OperandKey& key, OperandPointers pointers) {
  const StepOperand* const operand = step.find(key);
  if (!operand) return {};
  const TensorSpec& spec = plan.spec(*operand);
  Numbers numbers{.dtype = spec.dtype, .data = pointers[static_cast<std::size_t>(operand - step.operands.data())]};
  numbers.values.resize(static_cast<std::size_t>(spec.numElements()));
  if (numbers.data) decode(numbers.data, spec.dtype, numbers.values);
  return numbers;
}

class GradNormReference final : public Kernel {
 public:
  GradNormReference(const Graph& graph, const Plan& plan, const Step& step)
      : m_parameters(trainedParameters(graph)), m_plan(plan), m_step(step) {}

  void run(OperandPointers pointers, std::byte*) override {
    Numbers squares = numbersOf(m_plan, m_step, {0, OperandKind::Output, 0}, pointers);
    squares.values.assign(squares.values.size(), 0.0);
    for (std::size_t i = 0; i < m_parameters.size(); ++i) {
      const OperandKey gradient{static_cast<int>(i), OperandKind::GradParameter, 0};
      for (const double g : numbersOf(m_plan, m_step, gradient, pointers).values)
        squares.values[m_parameters[i].isShard ? 0 : 1] += g * g;
    }
    squares.store();
  }

 private:
  std::vector<TrainedParameter> m_parameters;
  const Plan& m_plan;
  const Step& m_step;
};

class AdamWReference final : public Kernel {
 public:
  AdamWReference(const Graph& graph, const Plan& plan, const Step& step)
      : m_options(*graph.optimizer()), m_parameters(trainedParameters(graph)), m_plan(plan), m_step(step) {}

  void run(OperandPointers pointers, std::byte*) override {
    std::int64_t& step = *reinterpret_cast<std::int64_t*>(pointers[0]);
    ++step;
    const std::vector<double> squares = numbers({0, OperandKind::Input, 1}, pointers).values;
    const auto corrections =
        adamWCorrections<double>(m_options, step, std::accumulate(squares.begin(), squares.end(), 0.0), rootOf);
    for (std::size_t member = 0; member < m_parameters.size(); ++member)
      if (!m_parameters[member].isFrozen) update(static_cast<int>(member), corrections, pointers);
  }

 private:
  Numbers numbers(const OperandKey& key, OperandPointers pointers) const {
    return numbersOf(m_plan, m_step, key, pointers);
  }

  void update(int member, const AdamWCorrections<double>& corrections, OperandPointers pointers) const {
    const OperandKey gradientKey{member, OperandKind::GradParameter, 0};
    Numbers weight = numbers({member, OperandKind::Parameter, 0}, pointers);
    Numbers gradient = numbers(gradientKey, pointers);
    Numbers m = numbers({member, OperandKind::Residual, 0}, pointers);
    Numbers v = numbers({member, OperandKind::Residual, 1}, pointers);
    Numbers master = numbers({member, OperandKind::Residual, 2}, pointers);
    std::vector<double>& w = master.data ? master.values : weight.values;
    const auto terms = adamWTerms<double>(m_options);
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
  std::vector<TrainedParameter> m_parameters;
  const Plan& m_plan;
  const Step& m_step;
};

}  // namespace

std::unique_ptr<Kernel> makeAdamWReference(const Graph& graph, const Plan& plan, const Step& step) {
  return std::make_unique<AdamWReference>(graph, plan, step);
}

std::unique_ptr<Kernel> makeGradNormReference(const Graph& graph, const Plan& plan, const Step& step) {
  return std::make_unique<GradNormReference>(graph, plan, step);
}

}  // namespace fuseline
