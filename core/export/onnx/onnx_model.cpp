// Lowers the document for inference, writes op by op, and names the extents that may be any.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_model.h"

#include "core/export/onnx/kept/model_ends_writing.h"
#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_node_order.h"
#include "core/export/onnx/onnx_operation.h"
#include "core/export/te/modules_between.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/pipeline_run.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Symbols = std::map<std::string, std::int64_t>;

/// The graph in inference, with other values for some symbols.
Result<Graph> inferenceGraph(const ExportedPipeline& pipeline, const Symbols& symbols = {}) {
  LoweringOptions options = pipeline.options.lowering;
  options.pass = ExecutionMode::Inference;
  for (const auto& [name, value] : symbols) options.symbols[name] = value;
  LoweredGraph lowered = lower(pipeline.document, options);
  if (hasErrors(lowered.diagnostics)) return Error{errorText(lowered.diagnostics, pipeline.name)};
  if (!pipeline.analysis.recipe) return std::move(lowered.graph);
  std::vector<Diagnostic> warnings;  // those that the analysis has
  return applyRecipe(std::move(lowered.graph), *pipeline.analysis.recipe, warnings);
}

Error withoutNodes(const std::string& id) {
  return {fmt::format(
      "{} (External) cannot be expressed in ONNX: its attribute nodes is empty; only importing an ONNX model fills "
      "it. Remove it, or export each part separately.",
      id)};
}

Result<void> addExternals(const ExportedPipeline& pipeline, const Graph& graph, const OnnxGraph& onnx,
                          OnnxModel& model) {
  const std::vector<ModuleBetween> externals = modulesBetween(pipeline.document, graph);
  for (const ModuleBetween& external : externals) {
    if (external.nodes.empty()) return withoutNodes(external.path);
    KeptPlace place{.id = external.path, .inputs = {}, .outputs = {}};
    for (const ValueId value : external.inputs) {
      place.inputs.push_back(onnx.nameOf(value));
      place.inputTypes.push_back(onnxType(graph.value(value).spec.dtype));
    }
    for (const ValueId value : external.outputs) {
      place.outputs.push_back(onnx.nameOf(value));
      place.outputTypes.push_back(onnxType(graph.value(value).spec.dtype));
    }
    Result<std::vector<WrittenConstant>> constants = writeKeptNodes(external.nodes, place, model.graph, model.opsets);
    if (!constants) return constants.error();
    std::ranges::move(*constants, std::back_inserter(model.constants));
  }
  if (!externals.empty()) sortNodes(model.graph);
  return {};
}

Result<OnnxModel> written(const ExportedPipeline& pipeline, const Graph& graph) {
  static const NamedTensors kNone;
  OnnxGraph onnx(graph, pipeline.onnxOpset == 0 ? kOnnxOpset : pipeline.onnxOpset);
  OnnxQuantization quantization(graph, pipeline.tensors ? *pipeline.tensors : kNone);
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node) {
    onnx.beginOperation(node);
    if (Result<void> added = addOnnxOperation(onnx, quantization); !added) return added.error();
  }
  OnnxModel model{
      .graph = onnx.finish(), .opsets = {}, .weights = onnx.weights(), .constants = {}, .notes = quantization.notes()};
  model.opsets.Add()->set_version(onnx.opset());
  if (Result<void> added = addExternals(pipeline, graph, onnx, model); !added) return added.error();
  addModelEnds(pipeline, graph, onnx, model);
  return model;
}

// ---- notes

std::string namesOf(const Graph& graph, bool (*is)(const Node&)) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (is(node)) names.push_back(node.id);
  return nameList(names);
}

void addNote(std::vector<std::string>& notes, const std::string& names, std::string_view sentence) {
  if (!names.empty()) notes.push_back(fmt::format("{}: {}", names, sentence));
}

std::vector<std::string> notesOf(const Graph& graph) {
  std::vector<std::string> notes;
  addNote(notes, namesOf(graph, [](const Node& node) { return node.operation->name == "Dropout"; }),
          "passes its input on, as in inference.");
  addNote(notes, namesOf(graph, [](const Node& node) { return !followsRecipeInOnnx(node); }),
          "in high precision. ONNX supports FP8 with one scale per tensor, in linear layers without groups.");
  const auto isBf16Product = [](const Node& node) {
    const bool isLinear = node.operation->name == "BasicLinear" || node.operation->name == "GroupedLinear";
    return isLinear && node.parameters[0].dtype == DType::BF16 && !isOnnxQuantizer(node.quantizers.weight.rowwise);
  };
  addNote(notes, namesOf(graph, isBf16Product),
          "a GEMM in bf16, which onnxruntime does not run on a CPU. For a CPU give the pipeline's inputs the dtype f32 "
          "or f16.");
  return notes;
}

// ---- extents

/// The part of a graph that is independent of its symbols.
std::string withoutExtents(::onnx::GraphProto graph) {
  graph.clear_input();
  graph.clear_output();
  graph.clear_value_info();
  return graph.SerializeAsString();
}

using Extents = std::vector<::onnx::TensorShapeProto_Dimension*>;

/// Extents of inputs, outputs and other tensors, in this order.
Extents extentsOf(::onnx::GraphProto& graph) {
  Extents extents;
  for (auto* const infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *infos)
      for (auto& extent : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        extents.push_back(&extent);
  return extents;
}

/// Small enough that its double is no reason to refuse anything.
std::optional<std::int64_t> valueOf(const ExportedPipeline& pipeline, const std::string& symbol, const Json& written) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  const Symbols& replaced = pipeline.options.lowering.symbols;
  const auto found = replaced.find(symbol);
  if (found == replaced.end() && !written.is_number_integer()) return std::nullopt;
  const auto value = found == replaced.end() ? written.get<std::int64_t>() : found->second;
  return value < 1 || value > kLargest ? std::nullopt : std::optional(value);
}

/// Weights of one size are those of one model.
bool haveSameWeights(const OnnxModel& a, const OnnxModel& b) {
  return std::ranges::equal(a.weights, b.weights, [&](const OnnxWeight& left, const OnnxWeight& right) {
    return std::ranges::equal(a.graph.initializer(left.initializer).dims(),
                              b.graph.initializer(right.initializer).dims());
  });
}

/// Nodes that a pipeline keeps may have declared it. True: the model's tensors are of this size alone.
bool fixExtents(OnnxModel& model, const std::string& symbol, std::int64_t value) {
  for (auto* const extent : extentsOf(model.graph))
    if (extent->dim_param() == symbol) extent->set_dim_value(value);
  return true;
}

/// Names every extent that is the symbol, if the graph with twice its value differs in extents alone. Those that follow
/// from it in other ways may be any. True: constants of nodes follow from it, so that it is a number in the model.
bool nameExtents(const ExportedPipeline& pipeline, OnnxModel& model, const std::string& symbol, std::int64_t value) {
  const Result<Graph> graph = inferenceGraph(pipeline, {{symbol, 2 * value}});
  if (!graph) return false;
  Result<OnnxModel> twice = written(pipeline, *graph);
  if (!twice || !haveSameWeights(model, *twice)) return false;
  if (withoutExtents(twice->graph) != withoutExtents(model.graph)) return fixExtents(model, symbol, value);
  const Extents extents = extentsOf(model.graph), others = extentsOf(twice->graph);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (!extents[i]->has_dim_value() || extents[i]->dim_value() == others[i]->dim_value()) continue;
    if (extents[i]->dim_value() == value && others[i]->dim_value() == 2 * value)
      extents[i]->set_dim_param(symbol);
    else
      extents[i]->Clear();
  }
  return false;
}

/// All symbols of the document.
void nameAllExtents(const ExportedPipeline& pipeline, OnnxModel& model) {
  std::vector<std::string> fixed;
  for (const auto& [symbol, expression] : pipeline.document.symbols().items())
    if (const auto value = valueOf(pipeline, symbol, expression))
      if (nameExtents(pipeline, model, symbol, *value)) fixed.push_back(fmt::format("{}={}", symbol, *value));
  if (fixed.empty()) return;
  model.notes.push_back(
      fmt::format("The model works at {} only, as constants of its nodes depend on them. Export again with --set for "
                  "other sizes.",
                  nameList(fixed)));
}

}  // namespace

Result<OnnxModel> onnxModel(const ExportedPipeline& pipeline) {
  const Result<Graph> graph = inferenceGraph(pipeline);
  if (!graph) return graph.error();
  Result<OnnxModel> model = written(pipeline, *graph);
  if (!model) return model;
  std::ranges::move(notesOf(*graph), std::back_inserter(model->notes));
  nameAllExtents(pipeline, *model);
  fillModelConstants(pipeline, *model);
  model->graph.set_name(pipeline.name);
  return model;
}

}  // namespace fuseline
