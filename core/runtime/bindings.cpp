// Collects the external tensors of a graph, and draws those that were not given.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/bindings.h"

#include "core/ops/external.h"
#include "core/ops/initialise.h"
#include "core/quant/apply_recipe.h"
#include "core/support/text.h"
#include "core/tensor/random_tensor.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// In names of constants of the nodes that an import keeps from before and after a pipeline.
constexpr std::string_view kOfImportedModel = "onnx:model";

/// A tensor that is needed, and how to draw it.
struct Need {
  std::string name;
  TensorSpec spec;
  std::function<Tensor()> draw;
  std::string copied = {};  // begins with the values of this tensor instead, which comes before it
};

Need dataNeed(std::string name, const TensorSpec& spec, std::uint64_t seed) {
  return {.name = name, .spec = spec, .draw = [=] { return randomNormal(spec, seed, name); }};
}

/// The first consumer with a port that defines how it is drawn; nullptr: none does.
const Use* drawingUse(const Graph& graph, const Value& value) {
  const auto draws = [&](const Use& use) {
    return static_cast<bool>(graph.node(use.node).operation->inputs[static_cast<std::size_t>(use.slot)].draw);
  };
  const auto found = std::ranges::find_if(value.uses, draws);
  return found == value.uses.end() ? nullptr : &*found;
}

Tensor drawnFor(const Graph& graph, const Use& use, std::uint64_t seed, const std::string& name) {
  const Node& node = graph.node(use.node);
  const std::vector<TensorSpec> inputs = graph.inputSpecs(use.node);
  return node.operation->inputs[static_cast<std::size_t>(use.slot)].draw({node.attributes, inputs, seed, name});
}

Need inputNeed(const Graph& graph, const Value& value, std::uint64_t seed) {
  const TensorSpec& spec = value.spec;
  if (const Use* use = drawingUse(graph, value))
    return {.name = value.name, .spec = spec, .draw = [&graph, use, seed, name = value.name] {
              return drawnFor(graph, *use, seed, name);
            }};
  // Counts that no op reads.
  if (!isFloat(spec.dtype)) return {.name = value.name, .spec = spec, .draw = [spec] { return Tensor::zeros(spec); }};
  return dataNeed(value.name, spec, seed);
}

Need parameterNeed(const Node& node, int slot, std::uint64_t seed) {
  const std::string name = node.parameterName(slot);
  const TensorSpec& spec = node.parameters[static_cast<std::size_t>(slot)];
  return {.name = name, .spec = spec, .draw = [&node, slot, seed, name, spec] {
            return initialParameter(*node.operation, node.attributes, slot, spec, seed, name);
          }};
}

/// Main-grad buffers start at 0.
void appendMainGradients(const Node& node, std::vector<Need>& needs) {
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) {
    const auto index = static_cast<std::size_t>(slot);
    if (!node.needs.parameters[index] || node.gradientSink(slot) != GradientSink::Accumulate) continue;
    const TensorSpec& spec = node.parameterGradients[index];
    needs.push_back(
        {.name = node.parameterGradientName(slot), .spec = spec, .draw = [spec] { return Tensor::zeros(spec); }});
  }
}

/// Scales begin at 1, amaxes at 0.
void appendQuantizerStates(const Graph& graph, std::vector<Need>& needs) {
  for (const QuantizerState& state : quantizerStates(graph)) {
    needs.push_back({.name = state.scaleName, .spec = scaleSpec(), .draw = [] {
                       return Tensor::fromDoubles(scaleSpec(), std::array{1.0});
                     }});
    const TensorSpec history = historySpec(*graph.delayedScaling());
    needs.push_back({.name = state.historyName, .spec = history, .draw = [history] { return Tensor::zeros(history); }});
  }
}

/// Moments begin at 0, and float32 copies as their parameters.
void appendOptimizerStates(const Graph& graph, std::vector<Need>& needs) {
  const auto append = [&](std::string name, const TensorSpec& spec, std::string copied = {}) {
    needs.push_back({.name = std::move(name),
                     .spec = spec,
                     .draw = [spec] { return Tensor::zeros(spec); },
                     .copied = std::move(copied)});
  };
  const std::vector<TrainedParameter> parameters = trainedParameters(graph);
  if (!parameters.empty()) append(std::string(kOptimizerStep), optimizerStepSpec());
  for (const TrainedParameter& parameter : parameters)
    for (const std::string& name : parameter.stateNames())
      append(name, parameter.stateSpec(), name.ends_with(kMasterParam) ? parameter.name : std::string());
}

/// A scalar is a loss, whose gradient with respect to itself is 1.
Need outputGradientNeed(const std::string& output, const TensorSpec& spec, std::uint64_t seed) {
  const std::string name = "grad." + output;
  if (!spec.shape.empty()) return dataNeed(name, spec, seed);
  return {.name = name, .spec = spec, .draw = [spec] { return Tensor::fromDoubles(spec, std::array{1.0}); }};
}

std::vector<Need> needsOf(const Graph& graph, std::uint64_t seed) {
  std::vector<Need> needs;
  for (const ValueId id : graph.inputs()) needs.push_back(inputNeed(graph, graph.value(id), seed));
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      needs.push_back(parameterNeed(node, slot, seed));
  appendQuantizerStates(graph, needs);
  appendOptimizerStates(graph, needs);
  if (graph.pass() == ExecutionMode::Inference) return needs;
  for (const Node& node : graph.nodes()) appendMainGradients(node, needs);
  for (const GraphOutput& output : graph.outputs())
    if (graph.value(output.value).needsGradient)
      needs.push_back(outputGradientNeed(output.name, graph.value(output.value).spec, seed));
  return needs;
}

bool isHistory(std::string_view name) { return name.ends_with(".amax_history"); }

/// A history of another length keeps its first rows, or is padded with rows of zeros, as in TransformerEngine.
bool isResizable(const Need& need, const Tensor& given) {
  const auto isColumn = [](const TensorSpec& spec) { return spec.shape.size() == 2 && spec.shape.back() == 1; };
  return isHistory(need.name) && given.spec.dtype == need.spec.dtype && isColumn(given.spec);
}

/// The given tensor in the required spec.
Tensor fitted(const Need& need, Tensor given) {
  given.data.resize(static_cast<std::size_t>(need.spec.bytes()), std::byte{0});
  given.spec = need.spec;
  return given;
}

/// A tensor that is not given.
Tensor initial(const Need& need, const NamedTensors& bindings) {
  if (need.copied.empty()) return need.draw();
  const auto source = std::ranges::find(bindings, need.copied, &NamedTensors::value_type::first);
  return Tensor::fromDoubles(need.spec, source->second.toDoubles());
}

class Needs {
 public:
  Needs(const Graph& graph, std::uint64_t seed) : m_needs(needsOf(graph, seed)) {
    for (const Need& need : m_needs) m_byName.emplace(need.name, &need);
    for (const ValueId input : graph.inputs())
      if (const std::string& name = graph.value(input).name; isOfExternal(name)) m_externals.emplace(externalOf(name));
  }
  Needs(const Needs&) = delete;
  Needs& operator=(const Needs&) = delete;

  const std::vector<Need>& all() const { return m_needs; }

  const Need* find(std::string_view name) const {
    const auto found = m_byName.find(name);
    return found == m_byName.end() ? nullptr : found->second;
  }

  Result<void> check(const std::string& name, const Tensor& given) const {
    const Need* const need = find(name);
    if (!need) return isForOthers(name) ? Result<void>() : unknown(name);
    if (need->spec == given.spec || isResizable(*need, given)) return {};
    return Error{fmt::format("{}: the given tensor is {}, but the pipeline needs {}.", name, toString(given.spec),
                             toString(need->spec))};
  }

 private:
  /// States of recipes that the pipeline does not run with now; they are kept apart by recipe and lose nothing.
  static bool isOtherState(const std::string& name) {
    const bool isState = name.ends_with(".scale") || isHistory(name);
    return isState && name.find('/') != std::string::npos;
  }

  /// State of an optimizer, which a run without one does not need.
  static bool isOfOptimizer(std::string_view name) {
    return name == kOptimizerStep || name.ends_with(kExpAvg) || name.ends_with(kExpAvgSq) ||
           name.ends_with(kMasterParam);
  }

  /// Constants of nodes that only an export writes, and states that only another recipe or an optimizer has.
  bool isForOthers(const std::string& name) const {
    const std::string_view owner = externalOf(name);
    return isOtherState(name) || isOfOptimizer(name) || owner == kOfImportedModel || m_externals.contains(owner);
  }

  Error unknown(const std::string& name) const {
    std::vector<std::string> names;
    for (const Need& need : m_needs) names.push_back(need.name);
    return {fmt::format("{}: the pipeline has no tensor of this name{}", name, didYouMean(nearest(name, names)))};
  }

  std::vector<Need> m_needs;
  std::unordered_map<std::string_view, const Need*> m_byName;
  std::set<std::string, std::less<>> m_externals;  // Externals with nodes that have constants, which an export writes
};

}  // namespace

Result<NamedTensors> makeBindings(const Graph& graph, std::uint64_t seed, const NamedTensors& given,
                                  const std::function<bool(const std::string& name)>& isWanted) {
  const Needs needs(graph, seed);
  std::unordered_map<std::string_view, const Tensor*> givenByName;
  for (const auto& [name, tensor] : given) {
    if (Result<void> fits = needs.check(name, tensor); !fits) return fits.error();
    givenByName.emplace(name, &tensor);
  }
  NamedTensors bindings;
  for (const Need& need : needs.all()) {
    if (isWanted && !isWanted(need.name)) continue;
    const auto found = givenByName.find(need.name);
    Tensor tensor = found == givenByName.end() ? initial(need, bindings) : fitted(need, *found->second);
    bindings.emplace_back(need.name, std::move(tensor));
  }
  return bindings;
}

std::int64_t bindingBytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Need& need : needsOf(graph, 0)) bytes += need.spec.bytes();
  return bytes;
}

NamedTensors thoseThatFit(const Graph& graph, NamedTensors tensors) {
  const Needs needs(graph, 0);
  std::erase_if(tensors, [&](const auto& each) { return !needs.check(each.first, each.second); });
  return tensors;
}

NamedTensors parametersOf(const Graph& graph, const NamedTensors& bindings) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) names.insert(node.parameterName(slot));
  NamedTensors parameters;
  std::ranges::copy_if(bindings, std::back_inserter(parameters),
                       [&](const auto& binding) { return names.contains(binding.first); });
  return parameters;
}

}  // namespace fuseline
