// Sums the plan's storages by the layers that their tensors are named after.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_forecast.h"

#include "core/document/file_format.h"
#include "core/lowering/document_operation.h"
#include "core/ops/offload.h"
#include "core/plan/memory_profile.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// "layer0" of "layer0.fc1"; the op itself outside of instances.
std::string layerOf(const std::string& path) { return path.substr(0, path.find('.')); }

/// The parameter of a tensor: "layer0.fc1.weight" of "grad.layer0.fc1.weight", and of itself.
std::string parameterOf(std::string name) {
  for (const std::string_view prefix : {"main_grad.", "grad."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

std::int64_t optimizerBytes(const TensorSpec& parameter) {
  constexpr std::int64_t kBytesOfF32 = 4;
  const std::int64_t tensors = parameter.dtype == DType::F32 ? 2 : 3;
  return saturatedProduct(tensors * kBytesOfF32, parameter.numElements());
}

class LayerSums {
 public:
  LayerSums(const Plan& plan, const Graph& graph) : m_plan(plan), m_graph(graph) {
    for (const Node& node : graph.nodes()) at(layerOf(node.path));
    addPersistent();
    for (const KeptTensor& kept : memoryProfile(plan).kept)
      if (!kept.isOnHost) at(layerOfKept(kept)).kept += kept.bytes;
  }

  std::vector<LayerMemory> take() && {
    std::erase_if(m_layers, [](const LayerMemory& layer) { return layer.parameters + layer.kept == 0; });
    return std::move(m_layers);
  }

 private:
  LayerMemory& at(const std::string& layer) {
    const auto [place, isNew] = m_places.emplace(layer, m_layers.size());
    if (isNew) m_layers.push_back({.layer = layer});
    return m_layers[place->second];
  }

  std::string layerOfKept(const KeptTensor& kept) const {
    if (!kept.readers.empty()) return layerOf(m_graph.node(kept.readers.front()).path);
    const std::string& name = m_plan.tensors[toIndex(kept.tensor)].name;
    return layerOf(name.substr(0, name.find(':')));
  }

  void addPersistent() {
    std::set<int> counted;
    std::set<std::string> trained;
    for (const PlanTensor& tensor : m_plan.tensors) {
      const bool isGradient = tensor.role == TensorRole::ParameterGradient || tensor.role == TensorRole::MainGradient;
      if (tensor.role == TensorRole::OptimizerState && tensor.name != kOptimizerStep)
        at(layerOf(tensor.name)).optimizer += tensor.spec.bytes();
      const bool isParameter = tensor.role == TensorRole::Parameter || tensor.role == TensorRole::QuantizerState;
      if (!isGradient && !isParameter) continue;
      const std::string parameter = parameterOf(tensor.name);
      if (isGradient && trained.insert(parameter).second) addOptimizer(parameter);
      if (!counted.insert(tensor.storage).second) continue;
      const std::int64_t bytes = m_plan.storages[toIndex(tensor.storage)].bytes;
      LayerMemory& layer = at(layerOf(parameter.substr(0, parameter.find(':'))));
      (isGradient ? layer.gradients : layer.parameters) += bytes;
    }
  }

  /// As if the plan had one.
  void addOptimizer(const std::string& parameter) {
    if (m_graph.optimizer()) return;
    const int tensor = m_plan.findTensor(parameter);
    if (tensor >= 0) at(layerOf(parameter)).optimizer += optimizerBytes(m_plan.tensors[toIndex(tensor)].spec);
  }

  const Plan& m_plan;
  const Graph& m_graph;
  std::vector<LayerMemory> m_layers;
  std::map<std::string, std::size_t, std::less<>> m_places;
};

LayerMemory sumOf(const std::vector<LayerMemory>& layers) {
  LayerMemory sum{.layer = "all"};
  for (const LayerMemory& layer : layers) {
    sum.parameters += layer.parameters;
    sum.gradients += layer.gradients;
    sum.kept += layer.kept;
    sum.optimizer += layer.optimizer;
  }
  return sum;
}

// ---- changes

MemoryChange planned(std::string name, const PipelineDocument& document, const AnalysisOptions& options) {
  const Analysis analysis = analyze(document, options);
  if (!analysis.fusedPlan) {
    const auto error = std::ranges::find(analysis.lowered.diagnostics, Severity::Error, &Diagnostic::severity);
    return {.name = std::move(name),
            .problem = error == analysis.lowered.diagnostics.end() ? "it cannot be planned" : error->message};
  }
  const Plan& plan = *analysis.fusedPlan;
  return {.name = std::move(name),
          .sum = sumOf(LayerSums(plan, analysis.graph()).take()),
          .onHost = plan.hostBytes,
          .allocated = plan.peakBytes()};
}

void setOffload(const PipelineDocument& document, const DocumentBlock& block, Json& ops) {
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const OperationPointer operation = operationOf(document, block.ops[i]);
    const std::string name = offloadAttribute().name;
    if (operation && operation->attribute(name)) ops[i]["attributes"][name] = true;
  }
}

PipelineDocument withOffload(const PipelineDocument& document) {
  Json json = toJson(document);
  setOffload(document, document.pipeline(), json["pipeline"]["ops"]);
  for (const auto& [name, block] : document.blocks()) setOffload(document, block, json["blocks"][name]["ops"]);
  return readDocument(json).document;
}

/// Inputs of an instance that another op computes.
std::int64_t inputBytes(const Graph& graph, const std::string& layer) {
  std::set<ValueId> inputs;
  for (const Node& node : graph.nodes())
    if (layerOf(node.path) == layer)
      for (const ValueId input : node.inputs) {
        const NodeId producer = graph.value(input).producer;
        if (producer >= 0 && layerOf(graph.node(producer).path) != layer) inputs.insert(input);
      }
  std::int64_t bytes = 0;
  for (const ValueId input : inputs) {
    const TensorSpec& spec = graph.value(input).spec;
    bytes += saturatedProduct(sizeBytes(spec.dtype), spec.numElements());
  }
  return bytes;
}

/// Each instance of a block keeps its inputs alone; in backward one at a time has all that it keeps now.
MemoryChange recomputed(const std::vector<LayerMemory>& layers, const MemoryChange& now, const Graph& graph) {
  std::set<std::string> instances;
  for (const Node& node : graph.nodes())
    if (!node.block.empty()) instances.insert(layerOf(node.path));
  MemoryChange change = now;
  std::int64_t largest = 0;
  for (const LayerMemory& layer : layers) {
    if (!instances.contains(layer.layer)) continue;
    largest = std::max(largest, layer.kept);
    change.sum.kept += inputBytes(graph, layer.layer) - layer.kept;
  }
  change.sum.kept += largest;
  change.allocated += change.sum.kept - now.sum.kept;
  change.name = "activation checkpointing: each block recomputed in backward";
  change.isEstimate = true;
  return change;
}

std::vector<MemoryChange> changesOf(const PipelineDocument& document, const AnalysisOptions& options,
                                    const Analysis& analysis, const std::vector<LayerMemory>& layers) {
  const Plan& plan = *analysis.fusedPlan;
  const std::string own = recipeName(document, options.recipe);
  std::vector<MemoryChange> changes = {{.name = fmt::format("as planned, recipe {}", own),
                                        .sum = sumOf(layers),
                                        .onHost = plan.hostBytes,
                                        .allocated = plan.peakBytes()}};
  for (const RecipeDefinition& definition : builtinRecipes()) {
    Result<Recipe> recipe = Recipe::create(definition);
    if (!recipe || definition.name == own) continue;
    AnalysisOptions other = options;
    other.recipe = std::move(*recipe);
    changes.push_back(planned("recipe " + definition.name, document, other));
  }
  if (analysis.graph().pass() != ExecutionMode::Training) return changes;
  changes.push_back(planned("cpu_offloading of all ops", withOffload(document), options));
  if (std::ranges::any_of(analysis.graph().nodes(), [](const Node& node) { return !node.block.empty(); }))
    changes.push_back(recomputed(layers, changes.front(), analysis.graph()));
  return changes;
}

// ---- text

bool isAlike(const LayerMemory& a, const LayerMemory& b) {
  return a.parameters == b.parameters && a.gradients == b.gradients && a.kept == b.kept && a.optimizer == b.optimizer;
}

std::string line(const std::string& name, std::size_t width, const LayerMemory& memory) {
  return fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}", name, width, formatBytes(memory.parameters),
                     formatBytes(memory.gradients), formatBytes(memory.kept), formatBytes(memory.optimizer));
}

std::string heading(const char* name, std::size_t width) {
  return fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}", name, width, "parameters", "gradients", "kept", "AdamW");
}

Json toJson(const LayerMemory& memory) {
  return {{"parameterBytes", memory.parameters},
          {"gradientBytes", memory.gradients},
          {"keptBytes", memory.kept},
          {"adamwBytes", memory.optimizer}};
}

}  // namespace

MemoryForecast memoryForecast(const PipelineDocument& document, const AnalysisOptions& options,
                              const Analysis& analysis) {
  MemoryForecast forecast{.layers = LayerSums(*analysis.fusedPlan, analysis.graph()).take()};
  forecast.changes = changesOf(document, options, analysis, forecast.layers);
  return forecast;
}

std::vector<LayerMemory> groupedLayers(const std::vector<LayerMemory>& layers) {
  std::vector<LayerMemory> groups;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t last = first;
    while (last + 1 < layers.size() && isAlike(layers[first], layers[last + 1])) ++last;
    groups.push_back(layers[first]);
    if (last > first) groups.back().layer = fmt::format("{} to {}, each", layers[first].layer, layers[last].layer);
    first = last + 1;
  }
  return groups;
}

std::string toString(const MemoryForecast& forecast) {
  std::vector<LayerMemory> lines = groupedLayers(forecast.layers);
  lines.push_back(forecast.changes.front().sum);
  lines.back().layer = "all layers";
  std::size_t width = 0;
  for (const LayerMemory& each : lines) width = std::max(width, each.layer.size());
  for (const MemoryChange& change : forecast.changes) width = std::max(width, change.name.size());
  std::string text = heading("Memory by layer, before a run", width) + "\n";
  for (const LayerMemory& each : lines) text += line(each.layer, width, each) + "\n";
  text += fmt::format("\n{} {:>12} {:>12}\n", heading("Changes, and their effect", width), "on the host", "allocated");
  for (const MemoryChange& change : forecast.changes) {
    if (!change.problem.empty()) {
      text += fmt::format("{:<{}}  {}\n", change.name, width, change.problem);
      continue;
    }
    text += fmt::format("{} {:>12} {:>12}{}\n", line(change.name, width, change.sum), formatBytes(change.onHost),
                        formatBytes(change.allocated), change.isEstimate ? "  (estimate)" : "");
  }
  return text +
         "kept: by forward for backward. AdamW: two moments in float32, and a float32 master copy of 16-bit "
         "parameters; only runs with --optimizer adamw allocate it.\n";
}

Json toJson(const MemoryForecast& forecast) {
  Json layers = Json::array(), changes = Json::array();
  for (const LayerMemory& layer : forecast.layers) {
    Json entry = toJson(layer);
    entry["layer"] = layer.layer;
    layers.push_back(std::move(entry));
  }
  for (const MemoryChange& change : forecast.changes) {
    Json entry = toJson(change.sum);
    entry.update({{"change", change.name},
                  {"offloadedBytes", change.onHost},
                  {"allocatedBytes", change.allocated},
                  {"isEstimate", change.isEstimate},
                  {"problem", change.problem}});
    changes.push_back(std::move(entry));
  }
  return {{"layers", std::move(layers)}, {"changes", std::move(changes)}};
}

Json memoryForecastSchema() {
  const auto fields = [](std::string name, std::string_view help) {
    return schema::Fields{{std::move(name), schema::text(help)},
                          {"parameterBytes", schema::integer("Parameters, and states of quantizers.")},
                          {"gradientBytes", schema::integer("Gradients of parameters.")},
                          {"keptBytes", schema::integer("Kept by forward for backward.")},
                          {"adamwBytes", schema::integer("State of AdamW; only runs with an optimizer allocate it.")}};
  };
  schema::Fields change = fields("change", "A recipe, offloading or recomputation.");
  change.insert(change.end(), {{"offloadedBytes", schema::integer("Host memory of offloaded tensors.")},
                               {"allocatedBytes", schema::integer("Allocated by a run of the fused plan.")},
                               {"isEstimate", schema::flag("Sum of sizes; the plan may need less.")},
                               {"problem", schema::text("Reason why it cannot be planned; usually empty.")}});
  return schema::object({{"layers", schema::list(schema::object(fields("layer", "Instance of a block, or op.")))},
                         {"changes", schema::list(schema::object(change))}});
}

}  // namespace fuseline
