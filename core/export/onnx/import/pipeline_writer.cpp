// From ops to JSON to a document, with notes about the differences from the model.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/pipeline_writer.h"

#include "core/document/json_text.h"
#include "core/edit/apply_edit.h"
#include "core/edit/fold_repeats.h"
#include "core/export/onnx/import/imported_weights.h"
#include "core/export/onnx/import/kept_ends.h"
#include "core/export/onnx/import/lost_casts.h"
#include "core/export/onnx/import/node_table.h"
#include "core/export/onnx/name_list.h"
#include "core/lowering/lowering.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<std::string> shownAll(std::vector<std::string> names) {
  for (std::string& name : names) name = shown(name);
  return names;
}

}  // namespace

Result<ImportedPipeline> PipelineWriter::write(const std::string& name) {
  LoadedDocument loaded = readDocument(pipelineJson());
  LoweredGraph lowered{.graph = {}, .diagnostics = loaded.diagnostics};
  if (!hasErrors(lowered.diagnostics)) lowered = lower(loaded.document, {.pass = ExecutionMode::Inference});
  if (hasErrors(lowered.diagnostics)) {
    noteMisfits(lowered.diagnostics);
    return Error{fmt::format("{}: the imported nodes do not form a valid pipeline:\n{}", name,
                             errorText(lowered.diagnostics, name))};
  }
  tryOtherExtents(loaded.document);
  ImportedPipeline imported{.document = std::move(loaded.document)};
  const FoldedPlaces places = fold(imported);
  addNotes(imported.notes, lowered.graph, places);
  imported.tensors = tensorNames(places);
  imported.nodes = nodeTable(m.graph, places);
  const auto find = [this](const Node& node, int slot) { return weightOf(node, slot); };
  addWeights(imported, lowered.graph, {.find = find, .folder = m_options.folder}, m_options, places);
  addKeptConstants(imported, places);
  addEnds(imported, places);
  return imported;
}

Json PipelineWriter::pipelineJson() {
  Json ops = Json::array(), wires = Json::array(), outputs = Json::array();
  for (const ImportedOperation& each : m.graph.operations) {
    ops.push_back({{"id", each.id}, {"op", each.found.operation}, {"attributes", attributesOf(each.found)}});
    for (const auto& [port, tensor] : each.found.inputs)
      wires.push_back({m.branches.portOf(tensor, &each, port), each.id + "." + port});
  }
  for (const std::string& output : m.border.outputs()) {
    const std::string id = m_ids.of(output);
    outputs.push_back({{"id", id}, {"from", m.branches.portOf(output)}});
    m_outputIds.emplace(id, output);
  }
  return {{"format", "fuseline-pipeline"},
          {"formatVersion", {{"major", 1}, {"minor", 0}}},
          {"symbols", m.graph.symbols.all()},
          {"pipeline", {{"inputs", m.border.inputs()}, {"ops", ops}, {"wires", wires}, {"outputs", outputs}}}};
}

Json PipelineWriter::attributesOf(const FoundOperation& found) const {
  Json attributes = found.attributes;
  for (Json& value : attributes)
    if (value.is_number_float()) value = shortestReal(value.get<double>());
  if (m.isMixed && found.dtype) attributes["dtype"] = dtypeName(*found.dtype);
  return attributes;
}

/// Ops that do not fit, or whose inputs do not.
void PipelineWriter::noteMisfits(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) {
    const auto operation = std::ranges::find(m.graph.operations, diagnostic.node, &ImportedOperation::id);
    if (diagnostic.severity != Severity::Error || operation == m.graph.operations.end()) continue;
    m_misfits.add(operation->tensor, diagnostic.message);
  }
}

/// Extents of two names may be the same only by chance, and a number of the model may not stand for the extent that its
/// symbol does: with one symbol doubled, everything must fit as well.
void PipelineWriter::tryOtherExtents(const PipelineDocument& document) {
  for (const auto& [symbol, value] : m.graph.symbols.all().items()) {
    const LoweringOptions doubled{.pass = ExecutionMode::Inference,
                                  .symbols = {{symbol, 2 * value.get<std::int64_t>()}}};
    const LoweredGraph lowered = lower(document, doubled);
    if (!hasErrors(lowered.diagnostics)) continue;
    if (m.prepared.literals().contains(symbol))
      m_misfits.literals.insert(symbol);
    else
      noteMisfits(lowered.diagnostics);
  }
}

FoldedPlaces PipelineWriter::fold(ImportedPipeline& imported) const {
  std::optional<FoldedRepeats> folded = m_options.keepsFlat ? std::nullopt : foldRepeats(imported.document);
  if (!folded || !applyEdit(imported.document, folded->edit)) return FoldedPlaces();
  imported.notes.push_back(
      fmt::format("{} identical layers became instances of block {}.", folded->numInstances, folded->block));
  return FoldedPlaces(std::move(folded->places));
}

void PipelineWriter::addNotes(std::vector<std::string>& notes, const Graph& graph, const FoldedPlaces& places) const {
  if (m.graph.hasUnknown()) std::ranges::move(m.border.cutNotes(), std::back_inserter(notes));
  if (!m.externals.isEmpty()) notes.push_back(m.externals.note(places));
  notes.insert(notes.end(), m.rewrite.reasons().begin(), m.rewrite.reasons().end());
  if (!m.prepared.guessedBranches().empty())
    notes.push_back(fmt::format("The branch of these If nodes is chosen at run time; the larger one was imported: {}.",
                                nameList(shownAll(m.prepared.guessedBranches()))));
  for (const auto& noted : {m.notes, lostCasts(m.graph, m_outputIds, graph)})
    for (const auto& [note, ops] : noted) notes.push_back(fmt::format("{}: {}", nameList(places.of(ops)), note));
  if (const std::vector<std::string> passed = passedOutputs(); !passed.empty())
    notes.push_back(fmt::format(
        "Outputs of the model that are also its inputs or constants are left out, also by `export --to onnx`: {}.",
        nameList(shownAll(passed))));
  addSharedNotes(notes, places);
  addSymbolNotes(notes);
}

/// Outputs that no node computes.
std::vector<std::string> PipelineWriter::passedOutputs() const {
  std::vector<std::string> names;
  for (const auto& output : m.graph.reading.graph().output()) {
    const bool isMade = m.graph.made.contains(m.graph.reading.source(output.name()));
    const bool isComputed = m.graph.reading.maker(output.name()) && !m.graph.reading.constant(output.name());
    if (!isMade && !isComputed) names.push_back(output.name());
  }
  return names;
}

/// Each op has parameters of its own.
void PipelineWriter::addSharedNotes(std::vector<std::string>& notes, const FoldedPlaces& places) const {
  std::map<std::string, std::vector<std::string>> readers;  // of constants
  for (const ImportedOperation& each : m.graph.operations)
    for (const FoundWeight& weight : each.found.weights)
      if (weight.constant && numElements(shapeOf(*weight.constant)) > 1)
        readers[weight.constant->name()].push_back(each.id);
  std::map<std::string, std::string> shared;  // names of weights, by their readers
  for (const auto& [constant, ops] : readers)
    if (ops.size() > 1) shared.emplace(nameList(places.of(ops)), shown(constant));
  for (const auto& [ops, constant] : shared)
    notes.push_back(fmt::format(
        "{} share {} in the model; each has its own copy here, and training changes them apart.", ops, constant));
}

void PipelineWriter::addSymbolNotes(std::vector<std::string>& notes) const {
  for (const auto& [symbol, value] : m.graph.symbols.all().items())
    notes.push_back(
        m.prepared.literals().contains(symbol)
            ? fmt::format("{0} is {1} in the model and a symbol here: --set {0}=N sets another size.", symbol,
                          value.dump())
            : fmt::format("{} is dynamic in the model and {} here. Set the symbol to another size if needed.", symbol,
                          value.dump()));
}

std::map<std::string, std::string> PipelineWriter::tensorNames(const FoldedPlaces& places) const {
  std::map<std::string, std::string> names;
  for (const auto& [tensor, port] : m.graph.ports)
    if (!m.graph.made.contains(tensor) || m.externals.tensors().contains(tensor))
      names[places.of(port)] = wholeText(tensor);
  for (const auto& [id, tensor] : m_outputIds) names[id] = wholeText(tensor);
  return names;
}

/// The weight of the op from which the node was made.
std::optional<FoundWeight> PipelineWriter::weightOf(const Node& node, int slot) const {
  const std::string name = node.parameterName(slot);
  const auto operation = std::ranges::find(m.graph.operations, node.owner, &ImportedOperation::id);
  if (operation == m.graph.operations.end()) return std::nullopt;
  const std::vector<FoundWeight>& weights = operation->found.weights;
  const auto weight = std::ranges::find(weights, name.substr(name.rfind('.') + 1), &FoundWeight::parameter);
  return weight == weights.end() ? std::nullopt : std::optional(*weight);
}

/// Constants of the nodes that Externals stand for, next to the parameters.
void PipelineWriter::addKeptConstants(ImportedPipeline& imported, const FoldedPlaces& places) const {
  if (!m_options.takesWeights || imported.weightsProblem) return;
  for (const auto& [tensor, numbers] : m.rewrite.constants())
    if (const auto port = m.graph.ports.find(tensor); port != m.graph.ports.end())
      imported.weights.emplace_back(port->second, numbers);
  for (const auto& [id, constant] : m.externals.constants())
    if (!addKeptConstant(imported, places.of(id), constant)) return;
}

bool PipelineWriter::addKeptConstant(ImportedPipeline& imported, const std::string& op,
                                     const KeptConstant& constant) const {
  Result<Tensor> tensor = keptTensor(constant, m_options.folder);
  if (tensor)
    imported.weights.emplace_back(fmt::format("{}.{}", op, constant.name), std::move(*tensor));
  else
    imported.weightsProblem = tensor.error();
  return static_cast<bool>(tensor);
}

/// Added to the content of the file, because no edit changes this section.
void PipelineWriter::addEnds(ImportedPipeline& imported, const FoldedPlaces& places) const {
  const KeptSource source{.opsets = m.opsets, .folder = m_options.folder};
  KeptEnds kept = keptEnds(m.graph, m_outputIds, source, places);
  for (const auto& [tensor, numbers] : m.rewrite.constants())
    if (const auto port = m.graph.ports.find(tensor); port != m.graph.ports.end())
      kept.ends.constants.push_back(port->second);
  const Json section = toJson(kept.ends);
  if (section.empty()) return;
  Json file = toJson(imported.document);
  file[kModelEndsSection] = section;
  imported.document = readDocument(file).document;
  if (kept.ends.nodes.empty()) return;
  if (!m.graph.leftOut.empty())
    imported.notes.push_back(fmt::format("The pipeline keeps these nodes, so that `export --to onnx` writes {} again.",
                                         passedOutputs().empty() ? "the whole model" : "them"));
  if (!m_options.takesWeights || imported.weightsProblem) return;
  for (const KeptConstant& constant : kept.constants)
    if (!addKeptConstant(imported, kModelEndsName, constant)) return;
}

}  // namespace fuseline
