// Looks from outputs to inputs. What is found is written as a pipeline file, which is then read as any other.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_import.h"

#include "core/export/onnx/import/batch_first.h"
#include "core/export/onnx/import/einsum_products.h"
#include "core/export/onnx/import/external_ops.h"
#include "core/export/onnx/import/folded_codes.h"
#include "core/export/onnx/import/folded_constants.h"
#include "core/export/onnx/import/fused_attention.h"
#include "core/export/onnx/import/graph_border.h"
#include "core/export/onnx/import/imported_weights.h"
#include "core/export/onnx/import/operation_search.h"
#include "core/export/onnx/import/packed_products.h"
#include "core/export/onnx/import/pipeline_writer.h"
#include "core/export/onnx/import/quantized_relu.h"
#include "core/export/onnx/import/residual_branches.h"
#include "core/export/onnx/import/sparse_constants.h"
#include "core/export/onnx/import/sunk_transposes.h"
#include "core/export/onnx/kept/model_ends.h"
#include "core/export/onnx/kept/old_forms.h"
#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_exporter.h"
#include "core/export/onnx/onnx_functions.h"
#include "core/export/onnx/onnx_fused_nodes.h"
#include "core/export/onnx/onnx_listing.h"
#include "core/export/onnx/onnx_node_names.h"
#include "core/lowering/lowering.h"
#include "core/ops/external.h"
#include "core/support/foreign_file.h"
#include "core/support/read_file.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// One attempt to import a graph. Its steps share what was found of the graph so far.
class GraphImport {
 public:
  GraphImport(const OnnxPreparation& prepared, const AttentionRewrite& rewrite, const OnnxOpsets& opsets,
              std::string_view name, const OnnxImportOptions& options, const Misfits& known)
      : m_graph{.reading = OnnxReading(prepared.graph(), standardOpset(opsets)),
                .symbols = ImportedSymbols(prepared.symbols())},
        m_border(m_graph, name),
        m_search(m_graph, known),
        m_externals(m_graph, m_border, known, {.opsets = opsets, .folder = options.folder}),
        m_branches(m_graph),
        m_name(name),
        m_options(options),
        m_prepared(prepared),
        m_opsets(opsets),
        m_rewrite(rewrite),
        m_known(known) {}

  /// If misfits() has any afterwards, this was not the last attempt.
  Result<ImportedPipeline> run() {
    m_border.nameInputs();
    m_search.run(m_border.dtype());
    if (m_graph.operations.empty() || (m_graph.hasUnknown() && m_options.isStrict)) return notUnderstood();
    if (Result<void> cut = cutOut(); !cut) return cut.error();
    m_branches.split();
    const ImportSteps steps{.graph = m_graph,
                            .border = m_border,
                            .externals = m_externals,
                            .branches = m_branches,
                            .prepared = m_prepared,
                            .opsets = m_opsets,
                            .rewrite = m_rewrite,
                            .notes = m_noted,
                            .isMixed = m_search.isMixed()};
    return PipelineWriter(steps, m_graph.ids, m_options, m_misfits).write(m_name);
  }

  const Misfits& misfits() const { return m_misfits; }

 private:
  Error notUnderstood() const {
    if (!m_graph.hasUnknown())
      return Error{fmt::format("{}: no node between its inputs and outputs has an op in Fuseline.", m_name)};
    const char* const next =
        m_graph.operations.empty() ? "Nothing remains to import." : "Without --strict the rest is imported.";
    return Error{fmt::format("{}: {}{}{} {}", m_name, m_graph.unknownText(), reasonSentence(),
                             isInDouble() ? kOfDouble : "", next)};
  }

  /// The reason may begin with the name of the model, as the error does.
  std::string reasonSentence() const {
    if (m_known.reason.empty()) return {};
    const std::string place = m_name + ": ";
    std::string sentence = m_known.reason.substr(m_known.reason.starts_with(place) ? place.size() : 0);
    sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    return " " + sentence;
  }

  static constexpr const char* kOfDouble =
      " The model computes in float64; Fuseline in float32, float16 and bfloat16. Convert the model.";
  bool isInDouble() const {
    return std::ranges::any_of(m_graph.leftOut, [&](const LeftOutNode& left) {
      return std::ranges::any_of(left.part.outputs, [&](const std::string& tensor) {
        return m_graph.reading.elementType(tensor) == ::onnx::TensorProto::DOUBLE;
      });
    });
  }

  /// Nodes between ops become Externals. Tensors that ops read from other nodes become inputs, and tensors that such
  /// nodes read from ops outputs.
  Result<void> cutOut() {
    leaveOutIslands(m_graph);
    joinGates(m_graph.operations, m_graph.reading, m_graph.uses());
    nameOperations();
    m_externals.add();
    for (const ImportedOperation& each : m_graph.operations)
      for (const auto& [port, tensor] : each.found.inputs)
        if (Result<void> named = m_border.cutInput(m_graph.reading.source(tensor), each.found); !named)
          misfit(each, named.error());
    if (!m_misfits.tensors.empty()) return Error{m_misfits.reason};
    m_border.addOutputs(m_externals.tensors());
    return {};
  }

  /// In execution order, so that numbers at the end of names increase.
  void nameOperations() {
    for (ImportedOperation& each : m_graph.operations) {
      each.id = m_graph.ids.of(nameOf(*m_graph.reading.maker(each.tensor), each.found.operation));
      m_graph.ports[each.tensor] = each.id + ".y";
      for (std::size_t i = 1; i < each.found.outputs.size(); ++i)
        m_graph.ports[each.found.outputs[i]] = fmt::format("{}.y{}", each.id, i);
      if (!each.found.note.empty()) m_noted[each.found.note].push_back(each.id);
    }
  }

  /// Without its input, nothing is known of the output of an op either.
  void misfit(const ImportedOperation& each, const Error& reason) {
    m_misfits.add(each.tensor, reason.message);
    m_graph.ports.erase(each.tensor);
  }

  FoundGraph m_graph;
  GraphBorder m_border;
  OperationSearch m_search;
  ExternalOps m_externals;
  ResidualBranches m_branches;
  std::string m_name;
  const OnnxImportOptions& m_options;
  const OnnxPreparation& m_prepared;
  const OnnxOpsets& m_opsets;
  const AttentionRewrite& m_rewrite;
  const Misfits& m_known;
  Misfits m_misfits;
  std::map<std::string, std::vector<std::string>> m_noted;  // ids of ops, by notes about them
};

std::string metadataOf(const ::onnx::ModelProto& model, std::string_view key) {
  const auto& entries = model.metadata_props();
  const auto found = std::ranges::find(entries, key, &::onnx::StringStringEntryProto::key);
  return found == entries.end() ? std::string() : found->value();
}

/// found: what did not fit. The graph is left as it was.
Result<ImportedPipeline> attemptImport(::onnx::ModelProto& model, const OnnxPreparation& prepared,
                                       std::string_view name, const OnnxImportOptions& options, const Misfits& known,
                                       Misfits& found) {
  const AttentionRewrite rewrite(*model.mutable_graph(), {.symbols = prepared.symbols(),
                                                          .literals = prepared.literals(),
                                                          .misfits = known.tensors,
                                                          .folder = options.folder});
  GraphImport attempt(prepared, rewrite, model.opset_import(), name, options, known);
  Result<ImportedPipeline> imported = attempt.run();
  found = attempt.misfits();
  found.literals.insert(rewrite.neededNumbers().begin(), rewrite.neededNumbers().end());
  return imported;
}

/// Errors: a given extent is not positive, or belongs to none of the model's symbols.
Result<void> checkExtents(const OnnxPreparation& prepared, const std::map<std::string, std::int64_t>& extents) {
  std::vector<std::string> open;
  for (const auto& [symbol, value] : prepared.symbols())
    if (!prepared.literals().contains(symbol)) open.push_back(symbol);
  for (const auto& [symbol, value] : extents) {
    if (value < 1)
      return Error{fmt::format("--set {}={}: expected a positive number.", symbol, value), ErrorKind::Usage};
    if (prepared.literals().contains(symbol))
      return Error{
          fmt::format("--set {0}={1}: the model fixes {0} to {2}. Set it later: fuseline run FILE --set {0}={1}.",
                      symbol, value, prepared.symbols().at(symbol)),
          ErrorKind::Usage};
    if (std::ranges::count(open, symbol) == 0)
      return Error{fmt::format("--set {}={}: the model has no such symbol. It has: {}.", symbol, value,
                               open.empty() ? "none" : nameList(open)),
                   ErrorKind::Usage};
  }
  return {};
}

/// Ops that do not fit are none in the next attempt. Each attempt finds another, so that there is an end.
Result<ImportedPipeline> importGraph(::onnx::ModelProto& model, std::string_view name,
                                     const OnnxImportOptions& options) {
  OnnxPreparation prepared(model, options.extents);
  prepared.prepare();
  const auto isFused = [](const ::onnx::NodeProto& node) { return node.op_type() == "FusedMatMul"; };
  if (std::ranges::any_of(model.graph().node(), isFused)) {  // one with a transposed factor of any rank
    splitFusedNodes(*model.mutable_graph(), standardOpset(model.opset_import()));
    prepared.prepare();
  }
  if (Result<void> known = checkExtents(prepared, options.extents); !known) return known.error();
  foldConstants(*model.mutable_graph(), options.folder);
  Misfits known;
  while (true) {
    Misfits found;
    Result<ImportedPipeline> imported = attemptImport(model, prepared, name, options, known, found);
    const std::size_t before = known.tensors.size() + known.literals.size();
    known.tensors.insert(found.tensors.begin(), found.tensors.end());
    known.literals.insert(found.literals.begin(), found.literals.end());
    if (known.reason.empty()) known.reason = found.reason;
    const bool isRefused = options.isStrict && !found.tensors.empty();
    if (isRefused || known.tensors.size() + known.literals.size() == before) return imported;
    if (!found.literals.empty()) prepared.prepare(known.literals);
  }
}

/// The pipeline stored in a model that Fuseline exported, if its graph has not changed since.
std::optional<ImportedPipeline> writtenPipeline(const ::onnx::ModelProto& model) {
  const std::string text = metadataOf(model, kOnnxPipelineKey);
  if (text.empty() || metadataOf(model, kOnnxGraphHashKey) != onnxGraphHash(model.graph())) return std::nullopt;
  LoadedDocument loaded = parseDocument(text);
  return hasErrors(loaded.diagnostics) ? std::nullopt
                                       : std::optional(ImportedPipeline{.document = std::move(loaded.document)});
}

/// "attention/constant1" is a constant of nodes that an External stands for, or that are before and after the ops.
void addKeptConstants(ImportedPipeline& written, const Graph& graph, const ::onnx::GraphProto& model,
                      const OnnxImportOptions& options) {
  constexpr std::string_view kMark = "/constant";
  const auto isKept = [&](std::string_view owner) {
    return owner == kModelEndsName || std::ranges::any_of(graph.inputs(), [&](ValueId input) {
             return externalOf(graph.value(input).name) == owner;
           });
  };
  for (const auto& tensor : model.initializer()) {
    const std::size_t mark = tensor.name().rfind(kMark);
    if (mark == std::string::npos || !isKept(std::string_view(tensor.name()).substr(0, mark))) continue;
    std::string name = tensor.name();
    name[mark] = '.';
    if (Result<Tensor> numbers = keptTensor({name, &tensor}, options.folder); numbers)
      written.weights.emplace_back(std::move(name), std::move(*numbers));
  }
}

/// Exported weights are called like parameters. Quantized ones are codes, which say less than the weights.
ImportedPipeline withWeights(ImportedPipeline written, const ::onnx::GraphProto& graph,
                             const OnnxImportOptions& options) {
  if (!options.takesWeights) return written;
  const LoweredGraph lowered = lower(written.document, {.pass = ExecutionMode::Inference});
  const auto find = [&](const Node& node, int slot) -> std::optional<FoundWeight> {
    const auto constant = std::ranges::find(graph.initializer(), node.parameterName(slot), &::onnx::TensorProto::name);
    if (constant == graph.initializer().end() || !floatTypeOf(constant->data_type())) return std::nullopt;
    return FoundWeight{node.parameterName(slot), &*constant};
  };
  addWeights(written, lowered.graph, {.find = find, .folder = options.folder}, options);
  addKeptConstants(written, lowered.graph, graph, options);
  return written;
}

/// Errors: a tensor has two producers, so that its readers are ambiguous.
Result<void> checkProducers(const ::onnx::GraphProto& graph, std::string_view name) {
  constexpr const char* kInitializer = "an initializer";
  std::map<std::string_view, std::string> producers;
  const auto add = [&](const std::string& tensor, const std::string& producer) -> Result<void> {
    std::string& known = producers[tensor];
    if (!known.empty() && !(known == "an input" && producer == kInitializer))  // an initializer is an input's default
      return Error{
          fmt::format("{}: {} and {} produce the same tensor, {}; expected one producer. Export the model again.", name,
                      known, producer, shown(tensor))};
    known = producer;
    return {};
  };
  for (const auto& input : graph.input())
    if (!input.name().empty()) producers.emplace(input.name(), "an input");
  for (const auto& tensor : graph.initializer())
    if (Result<void> added = add(tensor.name(), kInitializer); !added) return added;
  for (const auto& node : graph.node())
    for (const std::string& output : node.output())
      if (!output.empty())
        if (Result<void> added = add(output, shown(node.op_type())); !added) return added;
  return {};
}

/// Errors: there is no such opset.
Result<void> checkOpset(std::int64_t opset, std::string_view name) {
  if (opset >= 1) return {};
  return Error{
      fmt::format("{}: found opset {}; expected 1 to {}. Export the model again.", name, opset, kNewestOnnxOpset)};
}

void noteOpset(std::int64_t opset, std::vector<std::string>& notes) {
  if (opset > kNewestOnnxOpset)
    notes.push_back(fmt::format("Fuseline knows opsets 1 to {}; the nodes of opset {} are read as those of opset {}.",
                                kNewestOnnxOpset, opset, kNewestOnnxOpset));
}

}  // namespace

bool isOnnxFile(const std::filesystem::path& path) { return path.extension() == ".onnx"; }

Result<ImportedPipeline> importOnnxModel(const std::string& bytes, std::string_view name,
                                         const OnnxImportOptions& options) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || !model.has_graph() || model.graph().output_size() == 0)
    return Error{fmt::format(
        "{}: expected an ONNX model whose graph has outputs; the file is of another kind, or truncated.", name)};
  if (std::optional<ImportedPipeline> written = writtenPipeline(model))
    return withWeights(std::move(*written), model.graph(), options);
  const std::int64_t opset = standardOpset(model.opset_import());
  if (Result<void> known = checkOpset(opset, name); !known) return known.error();
  if (Result<void> sound = checkProducers(model.graph(), name); !sound) return sound.error();
  if (const std::string function = recursiveFunction(model); !function.empty())
    return Error{
        fmt::format("{}: the function {} calls itself. Export the model again without it.", name, shown(function))};
  fillSparseConstants(*model.mutable_graph(), options.folder);
  standardizeQuantization(*model.mutable_graph());
  writeEinsumsAsProducts(*model.mutable_graph());
  splitPackedProducts(*model.mutable_graph(), options.folder);
  foldConstants(*model.mutable_graph(), options.folder);
  foldSmallCodes(*model.mutable_graph(), options.folder);
  splitFusedAttention(model, options.folder);
  if (opset < kOpsetOfSoftmaxOfOneAxis) writeAxesOfSoftmaxes(*model.mutable_graph());
  splitFusedNodes(*model.mutable_graph(), opset);
  addQuantizedRelus(*model.mutable_graph(), options.folder);
  moveBatchFirst(*model.mutable_graph());
  sinkTransposes(*model.mutable_graph());
  Result<ImportedPipeline> imported = importGraph(model, name, options);
  if (imported) noteOpset(opset, imported->notes);
  return imported;
}

Result<ImportedPipeline> importOnnx(const std::filesystem::path& path, const OnnxImportOptions& options) {
  const Result<std::string> bytes = readWholeFile(path, {.what = "ONNX model", .maxMiB = 2048});
  if (!bytes) return bytes.error();
  if (const auto foreign = foreignFileText(std::string_view(*bytes)); foreign && !looksLikeOnnx(*bytes))
    return Error{fmt::format("{}: {}", path.string(), *foreign)};
  OnnxImportOptions beside = options;
  beside.folder = path.parent_path();
  return importOnnxModel(*bytes, path.string(), beside);
}

}  // namespace fuseline
