// Quantizing and updating scales, as core/quant does it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"

#include "core/quant/copy_memory.h"
#include "core/quant/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace fuseline {

namespace {

int indexOf(const Step& step, const OperandKey& key) {
  const auto found = std::ranges::find(step.operands, key, &StepOperand::key);
  return found == step.operands.end() ? -1 : static_cast<int>(found - step.operands.begin());
}

std::byte* at(std::span<std::byte* const> pointers, int index) {
  return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
}

float amaxOf(const Tensor& x) {
  const std::vector<double> values = x.toDoubles();
  return fuseline::amaxOf(std::vector<float>(values.begin(), values.end()));
}

class QuantizeKernel final : public Kernel {
 public:
  QuantizeKernel(const Graph& graph, const Plan& plan, const Step& step)
      : m_source(QuantizeOperands(step, step.copies.front()).source),
        m_spec(step.copies.front().spec),
        m_reference(graph, plan, step, step.copies.front()) {}

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    Tensor x = Tensor::zeros(m_spec);
    std::copy_n(at(pointers, m_source), x.data.size(), x.data.begin());
    m_reference.run(x, pointers);
  }

 private:
  int m_source;
  TensorSpec m_spec;
  QuantizeReference m_reference;
};

class ScaleUpdate final : public Kernel {
 public:
  ScaleUpdate(const Plan& plan, const Step& step) : m_work(*step.scaleUpdate) {
    for (int i = 0; i < static_cast<int>(m_work.maxFinites.size()); ++i) {
      m_scales.push_back(indexOf(step, {0, OperandKind::Parameter, i}));
      m_histories.push_back(indexOf(step, {0, OperandKind::Residual, i}));
    }
    m_historyLength = static_cast<std::size_t>(plan.spec(step.operands[1]).numElements());
  }

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    for (std::size_t i = 0; i < m_scales.size(); ++i) {
      auto& scale = *reinterpret_cast<float*>(at(pointers, m_scales[i]));
      auto* const history = reinterpret_cast<float*>(at(pointers, m_histories[i]));
      updateDelayedScaling(scale, {history, m_historyLength},
                           {.margin = m_work.options.margin,
                            .takesMostRecent = m_work.options.takesMostRecent,
                            .maxFinite = m_work.maxFinites[i]});
    }
  }

 private:
  ScaleUpdateWork m_work;
  std::vector<int> m_scales;
  std::vector<int> m_histories;
  std::size_t m_historyLength = 0;
};

}  // namespace

QuantizeOperands::QuantizeOperands(const Step& step, const QuantizeWork& work)
    : source(indexOf(step, work.source)),
      rowwise(indexOf(step, {work.member, OperandKind::Output, 0})),
      columnwise(indexOf(step, {work.member, OperandKind::Output, 1})),
      scale(indexOf(step, {work.member, OperandKind::Parameter, 0})),
      history(indexOf(step, {work.member, OperandKind::Residual, 0})) {}

QuantizerInputs quantizerInputs(const Graph& graph, const QuantizeWork& work, const QuantizeOperands& operands,
                                std::span<std::byte* const> pointers) {
  QuantizerInputs inputs{.scale = std::nullopt, .amax = std::nullopt, .transformedAmax = std::nullopt, .name = {}};
  inputs.name = quantizedName(graph.node(work.reader), work.type);
  if (const std::byte* const scale = at(pointers, operands.scale)) {
    float value = 1.0F;
    std::memcpy(&value, scale, sizeof(value));
    inputs.scale = value;
  }
  return inputs;
}

void recordAmax(std::byte* history, float amax) {
  float current = 0.0F;
  std::memcpy(&current, history, sizeof(current));
  current = std::fmax(current, amax);
  std::memcpy(history, &current, sizeof(current));
}

QuantizeReference::QuantizeReference(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work)
    : m_graph(graph), m_plan(plan), m_step(step), m_work(work), m_operands(step, work) {}

void QuantizeReference::run(const Tensor& x, std::span<std::byte* const> pointers) const {
  const QuantizerInputs inputs = quantizerInputs(m_graph, m_work, m_operands, pointers);
  const TensorQuantizers& quantizers = m_work.quantizers;
  if (quantizers.rowwise) make(x, *quantizers.rowwise, inputs, m_operands.rowwise, pointers);
  if (quantizers.columnwise) make(x, *quantizers.columnwise, inputs, m_operands.columnwise, pointers);
  if (std::byte* const history = at(pointers, m_operands.history)) recordAmax(history, amaxOf(x));
}

void QuantizeReference::make(const Tensor& x, const QuantizerSpec& quantizer, const QuantizerInputs& inputs, int copy,
                             std::span<std::byte* const> pointers) const {
  const TensorSpec& spec = m_plan.spec(m_step.operands[static_cast<std::size_t>(copy)]);
  const Result<void> made = quantizeToMemory(x, quantizer, inputs, spec, at(pointers, copy));
  if (!made) throw std::runtime_error(made.error().message);
}

std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step) {
  return std::make_unique<QuantizeKernel>(graph, plan, step);
}

std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step) {
  return std::make_unique<ScaleUpdate>(plan, step);
}

}  // namespace fuseline
