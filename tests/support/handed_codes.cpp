// Computes the op by its textbook formula in double precision.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/handed_codes.h"

#include "core/fusion/fuser.h"
#include "core/numerics/minifloat.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/pipelines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace fuseline::testing {

namespace {

constexpr std::int64_t kRows = 128;
constexpr std::int64_t kCols = 256;

std::vector<double> normalized(const std::vector<double>& x, const std::vector<double>& weight, double eps) {
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += kCols) {
    double squares = 0.0;
    for (std::size_t col = 0; col < kCols; ++col) squares += x[first + col] * x[first + col];
    const double rstd = 1.0 / std::sqrt(squares / kCols + eps);
    for (std::size_t col = 0; col < kCols; ++col) y[first + col] = x[first + col] * rstd * weight[col];
  }
  return y;
}

std::vector<double> silu(std::vector<double> x) {
  for (double& value : x) value /= 1.0 + std::exp(-value);
  return x;
}

/// As FP8 GEMMs read a tensor whose scale is 1, the first one.
std::vector<double> encoded(std::vector<double> values) {
  for (double& value : values) value = static_cast<double>(E4m3::toFloat(E4m3::fromFloat(static_cast<float>(value))));
  return values;
}

/// y = x W^T. weight: [kCols, kCols]
std::vector<double> product(const std::vector<double>& x, const std::vector<double>& weight) {
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += kCols)
    for (std::size_t col = 0; col < kCols; ++col)
      for (std::size_t k = 0; k < kCols; ++k) y[first + col] += x[first + k] * weight[col * kCols + k];
  return y;
}

/// The result of op on x.
std::vector<double> resultOf(const Node& op, const std::vector<double>& x, Executor& executor) {
  const auto weight = [&] { return executor.read("op.weight")->toDoubles(); };
  if (op.operation->name == "RMSNorm") return normalized(x, weight(), op.attributes.real("eps"));
  return op.operation->name == "BasicLinear" ? product(encoded(x), encoded(weight())) : silu(x);
}

std::string historyOfReader(const Graph& graph) {
  for (const QuantizerState& state : quantizerStates(graph))
    if (graph.node(state.node).id == "fc" && state.type == TensorType::Input) return state.historyName;
  return {};
}

/// The rowwise copy that the step makes.
std::string copyOf(const Plan& plan, const Step& step) {
  return plan.tensors[static_cast<std::size_t>(step.find({step.copies.front().member, OperandKind::Output, 0})->tensor)]
      .name;
}

}  // namespace

::testing::AssertionResult handsOnUnrounded(const std::string& operation, std::shared_ptr<Backend> backend) {
  const Link op = operation == "BasicLinear" ? linear(kCols, "op") : link(operation, "op");
  const Graph graph = chain(DType::BF16, {kRows, kCols}, {op, linear(128, "fc")},
                            {.pass = ExecutionMode::Inference, .recipe = "DelayedScaling"});
  const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backend)}));
  const Plan plan = makePlan(graph, report);
  const auto step = std::ranges::find(plan.steps, "op", &Step::name);
  if (step == plan.steps.end() || step->copies.empty())
    return ::testing::AssertionFailure() << operation << " hands on no codes";
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 3)));
  if (const auto ran = executor->run(); !ran) return ::testing::AssertionFailure() << ran.error().message;

  const std::vector<double> x = executor->read(graph.value(graph.inputs().front()).name)->toDoubles();
  const std::vector<double> y = resultOf(graph.node(step->nodes.front()), x, *executor);
  const Tensor memory = *executor->read(copyOf(plan, *step));
  double amax = 0.0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    amax = std::max(amax, std::abs(y[i]));
    // The first scale is 1.
    others += static_cast<std::uint8_t>(memory.data[i]) != E4m3::fromFloat(static_cast<float>(y[i])) ? 1 : 0;
  }
  if (others > y.size() / 200) return ::testing::AssertionFailure() << others << " codes of " << y.size() << " differ";
  const double recorded = executor->read(historyOfReader(graph))->toDoubles().front();
  if (std::abs(recorded - amax) <= 1e-3 * amax) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the amax is " << recorded << ", not " << amax;
}

FusionReport fusedFor(const Graph& graph, const std::shared_ptr<Backend>& backend) {
  return std::move(*fuse(graph, {.capabilities = capabilitiesOf(backend)}));
}

bool isQuantizedByProducer(const Graph& graph, const FusionReport& report, const std::string& op) {
  return std::ranges::any_of(report.fusedOperands, [&](const FusedOperand& operand) {
    return operand.type == TensorType::Input && graph.node(operand.reader).id == op;
  });
}

FusionReport withoutFusedOperands(FusionReport report) {
  report.fusedOperands.clear();
  return report;
}

FusionReport withoutFusedOperandsOf(const Graph& graph, FusionReport report, const std::string& op) {
  std::erase_if(report.fusedOperands, [&](const FusedOperand& operand) { return graph.node(operand.reader).id == op; });
  return report;
}

std::vector<std::vector<double>> statesOfQuantizers(const Graph& graph, const FusionReport& report,
                                                    const std::shared_ptr<Backend>& backend) {
  const Plan plan = makePlan(graph, report);
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 3)));
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(executor->run());
  std::vector<std::vector<double>> states;
  for (const QuantizerState& state : quantizerStates(graph))
    for (const std::string& name : {state.scaleName, state.historyName})
      states.push_back(executor->read(name)->toDoubles());
  return states;
}

bool quantizesUnrounded(const Graph& graph, const FusionReport& report) {
  const Plan plan = makePlan(graph, report);
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    return std::ranges::any_of(
        step.copies, [](const QuantizeWork& work) { return work.isUnrounded && work.spec.dtype != DType::F32; });
  });
}

std::string differenceOfNextCodes(const RunResults& actual, const RunResults& expected) {
  RunResults outputs = expected;
  std::erase_if(outputs, [](const auto& result) { return result.first.starts_with("grad."); });
  const std::string ofOutputs = firstDifferenceInNorm(actual, outputs, 0.03);
  return ofOutputs.empty() ? firstDifferenceInNorm(actual, expected, 0.15) : ofOutputs;
}

}  // namespace fuseline::testing
