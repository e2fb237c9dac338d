// Three runs of one pipeline, compared tensor by tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/numerics_run.h"
#include "core/runtime/quantize_steps.h"

#include "core/graph/retype.h"
#include "core/quant/copy_memory.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A tensor that the device did not give back, in its words; an Error to the caller of measureNumerics.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A run that keeps every tensor.
struct KeptRun {
  std::unique_ptr<Plan> plan;  // the executor refers to it
  std::unique_ptr<Executor> executor;

  /// Throws Unreadable.
  Tensor read(const std::string& tensor) const {
    Result<Tensor> copy = executor->read(tensor);
    if (!copy) throw Unreadable(copy.error().message);
    return std::move(*copy);
  }

  /// Nothing where the plan has no such tensor. Throws Unreadable.
  std::optional<std::vector<double>> values(const std::string& tensor) const {
    if (plan->findTensor(tensor) < 0) return std::nullopt;
    return read(tensor).toDoubles();
  }
};

Result<KeptRun> runKeeping(const NumericsRequest& request, const Graph& graph, const FusionReport& report,
                           const NamedTensors& bindings) {
  KeptRun run{.plan = std::make_unique<Plan>(makePlan(graph, report, {.keepIntermediates = true})), .executor = {}};
  Result<std::unique_ptr<Executor>> executor = Executor::create(request.backend, graph, *run.plan, bindings);
  if (!executor) return executor.error();
  run.executor = std::move(*executor);
  for (int done = 0; done <= request.warmup; ++done) {
    const Result<RunOutcome> outcome = run.executor->run(request.cancel);
    if (!outcome) return outcome.error();
    if (*outcome == RunOutcome::Cancelled) return Error{"Measuring numerics was cancelled.", ErrorKind::RunFailed};
  }
  return run;
}

/// The same values for a graph with other dtypes.
Result<NamedTensors> converted(const Graph& graph, const NamedTensors& bindings) {
  Result<NamedTensors> wanted = makeBindings(graph, 0);
  if (!wanted) return wanted.error();
  for (auto& [name, tensor] : *wanted) {
    const auto given = std::ranges::find(bindings, name, &NamedTensors::value_type::first);
    if (given != bindings.end()) tensor = Tensor::fromDoubles(tensor.spec, given->second.toDoubles());
  }
  return wanted;
}

Result<KeptRun> runInFloat32(const NumericsRequest& request, const Graph& graph) {
  const Result<NamedTensors> bindings = converted(graph, request.bindings);
  if (!bindings) return bindings.error();
  return runKeeping(request, graph, unfused(graph), *bindings);
}

/// A step's result in numbers, and the last step that writes it.
struct Made {
  const Step* step;
  const PlanTensor* tensor;
};

std::vector<Made> madeBy(const Plan& plan) {
  std::vector<Made> made;
  for (const Step& step : plan.steps) {
    if (step.transfer) continue;
    for (const StepOperand& operand : step.operands) {
      const PlanTensor& tensor = plan.tensors[static_cast<std::size_t>(operand.tensor)];
      const bool isNumbers = isFloat(tensor.spec.dtype) && !tensor.spec.quantized;
      if (operand.access == OperandAccess::Accumulate)
        std::erase_if(made, [&](const Made& earlier) { return earlier.tensor == &tensor; });
      if (operand.access != OperandAccess::Read && isNumbers && tensor.role != TensorRole::QuantizerState)
        made.push_back({&step, &tensor});
    }
  }
  return made;
}

std::string ownerOf(const Graph& graph, const Step& step) {
  return step.nodes.empty() ? "" : graph.node(step.nodes.front()).owner;
}

std::optional<ElementFormat> coarsestFormat(const Graph& graph) {
  std::optional<ElementFormat> coarsest;
  for (const Node& node : graph.nodes())
    for (const TensorQuantizers* quantizers :
         {&node.quantizers.input, &node.quantizers.weight, &node.quantizers.gradOutput})
      for (const std::optional<QuantizerSpec>* quantizer : {&quantizers->rowwise, &quantizers->columnwise})
        if (*quantizer && coarsest != ElementFormat::E2M1)
          coarsest = (*quantizer)->format == ElementFormat::E2M1 ? ElementFormat::E2M1 : ElementFormat::E4M3;
  return coarsest;
}

/// The coarsest rounding of all computed or given values.
double coarsestRounding(const Graph& graph) {
  double coarsest = 0.0;
  for (const Value& value : graph.values()) coarsest = std::max(coarsest, toleranceOf(value.spec.dtype).relative);
  return coarsest;
}

/// A narrower dtype or quantized compute anywhere widens it everywhere: the propagation of errors is not followed, and
/// an rstd in float32 is computed from bf16 values that one plan rounds more often than the other. TransformerEngine's
/// tests do the same. Only the relative part widens, because the absolute one applies to values around 1.
Tolerance toleranceIn(const Graph& graph, DType dtype) {
  Tolerance tolerance = toleranceOf(dtype);
  const bool hasProducts =
      std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.operation->isQuantizable; });
  if (dtype == DType::F32 && hasProducts) tolerance = kToleranceOfProducts;
  tolerance.relative = std::max(tolerance.relative, coarsestRounding(graph));
  if (const auto format = coarsestFormat(graph))
    tolerance.relative = std::max(tolerance.relative, toleranceOf(*format).relative);
  return tolerance;
}

std::vector<ErrorNumerics> errorsBetween(const Graph& graph, const KeptRun& actual, const KeptRun& expected) {
  std::vector<ErrorNumerics> errors;
  for (const auto& [step, tensor] : madeBy(*actual.plan)) {
    const auto reference = expected.values(tensor->name);
    if (!reference) continue;
    errors.push_back(errorOf(tensor->name, *actual.values(tensor->name), *reference, tensor->spec.dtype,
                             toleranceIn(graph, tensor->spec.dtype), tensor->spec.cols()));
    errors.back().owner = ownerOf(graph, *step);
  }
  return errors;
}

std::string formatText(const QuantizedForm& form) {
  return fmt::format("{} ({})", formatName(form.format), traitsOf(form.scaling).name);
}

/// Number of elements that represent a tensor when other recipes are tried.
constexpr std::int64_t kSampledElements = 1 << 15;
/// The largest block of a scaling is as high.
constexpr std::int64_t kSampledRows = 128;

/// The first rows, in whole blocks.
Tensor sampleOf(const Tensor& x) {
  const std::int64_t rows = x.spec.rows();
  const std::int64_t cols = std::max<std::int64_t>(x.spec.cols(), 1);
  const std::int64_t wanted = std::max(kSampledElements / cols / kSampledRows, std::int64_t{1}) * kSampledRows;
  if (wanted >= rows) return x;
  TensorSpec spec{.dtype = x.spec.dtype, .shape = {wanted, cols}};
  const auto end = x.data.begin() + static_cast<std::ptrdiff_t>(spec.bytes());
  return {.spec = std::move(spec), .data = {x.data.begin(), end}};
}

/// Nothing where the recipe leaves the operand as it is, or its blocks do not fit.
std::optional<Requantized> requantized(const Tensor& x, const RecipeDefinition& definition, OperandRole role) {
  const auto quantizer = Recipe::create(definition)->quantizerFor(role);
  if (!quantizer || !fitsGemm(x.spec, quantizer->scaling, directionOf(role))) return std::nullopt;
  TensorSpec copy = x.spec;
  copy.quantized = formOf(*quantizer, directionOf(role));
  std::vector<std::byte> memory(static_cast<std::size_t>(copy.bytes()));
  if (!quantizeToMemory(x, *quantizer, {}, copy, memory.data())) return std::nullopt;
  return Requantized{.recipe = definition.name,
                     .format = formatText(*copy.quantized),
                     .element = quantizer->format,
                     .elements = x.spec.numElements(),
                     .losses = lossesOf(x, copy, memory.data())};
}

std::vector<Requantized> underEveryRecipe(const Tensor& x, TensorType type) {
  const OperandRole role{type, type == TensorType::GradOutput ? GemmRole::Dgrad : GemmRole::Fprop};
  const Tensor sample = sampleOf(x);
  std::vector<Requantized> list;
  for (const RecipeDefinition& definition : builtinRecipes())
    if (std::optional<Requantized> other = requantized(sample, definition, role)) list.push_back(std::move(*other));
  return list;
}

const PlanTensor& tensorAt(const KeptRun& run, const Step& step, int operand) {
  const int tensor = step.operands[static_cast<std::size_t>(operand)].tensor;
  return run.plan->tensors[static_cast<std::size_t>(tensor)];
}

CopyNumerics copyNumerics(const Graph& graph, const KeptRun& run, const QuantizeWork& work, const Tensor& source,
                          const PlanTensor& copy) {
  const Tensor memory = run.read(copy.name);
  CopyNumerics numerics{.name = copy.name,
                        .owner = graph.node(work.reader).owner,
                        .format = formatText(*copy.spec.quantized),
                        .losses = lossesOf(source, copy.spec, memory.data.data()),
                        .magnitudes = magnitudesOf(source.toDoubles())};
  if (copy.spec.quantized->direction == Usage::Rowwise) numerics.requantized = underEveryRecipe(source, work.type);
  return numerics;
}

/// Precondition: the run kept every tensor, so that every step's quantization source exists.
std::vector<CopyNumerics> copiesOf(const Graph& graph, const KeptRun& run) {
  std::vector<CopyNumerics> copies;
  for (const Step& step : run.plan->steps)
    for (const QuantizeWork& work : step.copies) {
      if (work.isAmaxOnly()) continue;
      const QuantizeOperands operands(step, work);
      const Tensor source = run.read(tensorAt(run, step, operands.source).name);
      for (const int copy : {operands.rowwise, operands.columnwise})
        if (copy >= 0) copies.push_back(copyNumerics(graph, run, work, source, tensorAt(run, step, copy)));
    }
  return copies;
}

std::vector<float> floatsOf(const KeptRun& run, const std::string& tensor) {
  const std::vector<double> values = *run.values(tensor);
  return {values.begin(), values.end()};
}

std::vector<FrozenScale> frozenScales(const Graph& graph, const KeptRun& run) {
  std::vector<FrozenScale> frozen;
  if (!graph.delayedScaling() || graph.delayedScaling()->takesMostRecent) return frozen;
  for (const QuantizerState& state : quantizerStates(graph)) {
    const Node& node = graph.node(state.node);
    const int steps = frozenSteps(floatsOf(run, state.historyName));
    const float scale = floatsOf(run, state.scaleName).front();
    const auto group = rowGroups(node) > 0 ? std::optional(state.group) : std::nullopt;
    if (steps > 0) frozen.push_back({quantizedName(node, state.type, group), node.owner, scale, steps});
  }
  return frozen;
}

bool hasNonFinite(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return !std::isfinite(value); });
}

std::optional<NonFiniteOrigin> firstNonFinite(const NumericsRequest& request, const KeptRun& run) {
  for (const auto& [name, tensor] : request.bindings)
    if (isFloat(tensor.spec.dtype) && hasNonFinite(tensor.toDoubles()))
      return NonFiniteOrigin{.step = "the inputs of the run", .tensor = name, .phase = "input"};
  for (const auto& [step, tensor] : madeBy(*run.plan))
    if (hasNonFinite(*run.values(tensor->name)))
      return NonFiniteOrigin{.step = step->name, .tensor = tensor->name, .phase = std::string(phaseName(step->phase))};
  return std::nullopt;
}

}  // namespace

Result<NumericsReport> measureNumerics(const NumericsRequest& request) try {
  const Result<Graph> exact = inDType(request.graph, DType::F32);
  if (!exact) return exact.error();
  const Result<KeptRun> reference = runInFloat32(request, *exact);
  if (!reference) return reference.error();
  const auto run = [&](const FusionReport& report) {
    return runKeeping(request, request.graph, report, request.bindings);
  };
  const Result<KeptRun> plain = run(unfused(request.graph));
  if (!plain) return plain.error();
  const Result<KeptRun> fused = run(request.fused);
  if (!fused) return fused.error();
  return NumericsReport{.recipe = request.recipe,
                        .copies = copiesOf(request.graph, *plain),
                        .frozenScales = frozenScales(request.graph, *plain),
                        .errors = errorsBetween(request.graph, *plain, *reference),
                        .fusionErrors = errorsBetween(request.graph, *fused, *plain),
                        .firstNonFinite = firstNonFinite(request, *plain)};
} catch (const Unreadable& problem) {
  return Error{problem.what(), ErrorKind::RunFailed};
}

}  // namespace fuseline
