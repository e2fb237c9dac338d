// Looks from outputs to inputs. What is found is written as a pipeline file, which is then read as any other.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_import.h"

#include "core/document/json_text.h"
#include "core/edit/apply_edit.h"
#include "core/edit/fold_repeats.h"
#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_attention.h"
#include "core/export/onnx/onnx_exporter.h"
#include "core/export/onnx/onnx_fused_nodes.h"
#include "core/export/onnx/onnx_gates.h"
#include "core/export/onnx/onnx_kept_nodes.h"
#include "core/export/onnx/onnx_listing.h"
#include "core/export/onnx/onnx_node_names.h"
#include "core/export/onnx/onnx_patterns.h"
#include "core/export/onnx/onnx_preparation.h"
#include "core/export/onnx/onnx_regions.h"
#include "core/export/onnx/onnx_symbols.h"
#include "core/lowering/lowering.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/foreign_file.h"
#include "core/support/read_file.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Where ops are that went into blocks, and the names of what belongs to them.
class FoldedPlaces {
 public:
  explicit FoldedPlaces(std::map<std::string, std::string> places = {}) : m_places(std::move(places)) {}

  /// "layer2.fc.weight" for "fc7.weight".
  std::string of(const std::string& name) const {
    const std::size_t end = std::min(name.find('.'), name.size());
    const auto place = m_places.find(name.substr(0, end));
    return place == m_places.end() ? name : place->second + name.substr(end);
  }
  std::vector<std::string> of(std::vector<std::string> names) const {
    for (std::string& name : names) name = of(name);
    return names;
  }

 private:
  std::map<std::string, std::string> m_places;  // by the ids that ops had
};

/// The note tells what a run would draw, and where it would take the rest from.
void addWeights(ImportedPipeline& imported, const Graph& graph, const WeightSource& source,
                const OnnxImportOptions& options, const FoldedPlaces& places = FoldedPlaces()) {
  if (!options.takesWeights) {
    imported.notes.emplace_back(
        "Weights are not in pipeline files: a run draws initial ones, or takes with --tensors those that `fuseline "
        "import MODEL --weights OUT.safetensors` writes.");
    return;
  }
  Result<ReadWeights> read = readWeights(graph, source);
  if (!read) {
    imported.weightsProblem = read.error();
    return;
  }
  for (auto& [name, tensor] : read->tensors) imported.weights.emplace_back(places.of(name), std::move(tensor));
  if (!read->missing.empty())
    imported.notes.push_back(
        fmt::format("The model has no numbers for {}: a run draws initial ones.", nameList(places.of(read->missing))));
}

/// What did not fit in one attempt, so that the next one does without.
struct Misfits {
  std::set<std::string> tensors;   // made by what is no op then
  std::set<std::string> literals;  // symbols that are numbers then
  std::string reason;              // of the first of the tensors
};

/// Names the first node whose outputs have no shape, on the way to this tensor.
std::string unknownShapeText(const OnnxReading& reading, const std::string& tensor) {
  const auto isUnknown = [&](const std::string& name) {
    return !name.empty() && !reading.constant(name) && !reading.type(name);
  };
  const ::onnx::NodeProto* node = reading.maker(tensor);
  for (int step = 0; node && step < reading.graph().node_size(); ++step) {
    const auto unknown = std::ranges::find_if(node->input(), isUnknown);
    const ::onnx::NodeProto* const before = unknown == node->input().end() ? nullptr : reading.maker(*unknown);
    if (!before) break;
    node = before;
  }
  if (!node) return "Note its shape in the model.";
  return fmt::format("No rule says what shape the outputs of {} ({}) have. Note them in the model's value_info.",
                     shown(node->name().empty() ? node->output(0) : node->name()), shown(node->op_type()));
}

std::string externalsText(std::size_t numNodes, const std::vector<std::string>& externals) {
  const std::string nodes = numNodes == 1
                                ? "1 node that is no op of Fuseline, or stands between such,"
                                : fmt::format("{} nodes that are no ops of Fuseline, or stand between such,", numNodes);
  return fmt::format(
      "{} became {} of op External, which is not run: {}. Its attribute module is for the Python that makes it.", nodes,
      externals.size() == 1 ? "one" : fmt::format("{}", externals.size()), nameList(externals));
}

/// tensor: the one by which it was found.
std::vector<std::string> outputsOf(const FoundOperation& found, const std::string& tensor) {
  return found.outputs.empty() ? std::vector{tensor} : found.outputs;
}

bool isViewNode(const ::onnx::NodeProto& node) {
  constexpr std::array kTypes = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  return node.domain().empty() && std::ranges::find(kTypes, node.op_type()) != kTypes.end();
}

/// What the graph calls any extent, a layer may know.
void learnFrom(const FoundOperation& reader, Json& extents) {
  if (reader.attributes.contains("in_features") && !extents.empty()) extents.back() = reader.attributes["in_features"];
}

/// "x", "x2", "x3".
std::string portNumbered(const char* name, std::size_t index) {
  return index == 0 ? name : fmt::format("{}{}", name, index + 1);
}

std::vector<std::string> shownAll(std::vector<std::string> names) {
  for (std::string& name : names) name = shown(name);
  return names;
}

class GraphImport {
 public:
  GraphImport(const OnnxPreparation& prepared, const AttentionRewrite& rewrite, const OnnxOpsets& opsets,
              std::string_view name, const Misfits& known)
      : m_reading(prepared.graph()),
        m_opsets(opsets),
        m_name(name),
        m_symbols(prepared.symbols()),
        m_prepared(prepared),
        m_rewrite(rewrite),
        m_known(known) {}

  /// Where misfits() has any afterwards, this was not the last attempt.
  Result<ImportedPipeline> run(const OnnxImportOptions& options) {
    m_options = options;
    nameInputs();
    findOperations();
    if (m_operations.empty() || (hasUnknown() && options.isStrict)) return notUnderstood();
    if (Result<void> cut = cutOut(); !cut) return cut.error();
    splitResiduals();
    return pipeline();
  }

  const Misfits& misfits() const { return m_misfits; }

 private:
  using Operation = ImportedOperation;

  /// A node that is no op, or an op that is left out with such.
  struct LeftOut {
    std::string name;  // "/attn/p (Softmax)"
    const ::onnx::NodeProto* node = nullptr;
    GraphPart part = {};
    int position = 0;
  };

  const ::onnx::GraphProto& graph() const { return m_reading.graph(); }

  // ---- inputs

  /// Weights may stand among the inputs, too. What is no pipeline's input, such as the numbers of tokens, is left to
  /// the nodes that read it.
  void nameInputs() {
    for (const auto& input : graph().input())
      if (!m_reading.constant(input.name()) && isInput(m_reading.type(input.name())))
        addInput(input.name(), *floatTypeOf(m_reading.type(input.name())->elem_type()));
  }

  static bool isInput(const ::onnx::TypeProto::Tensor* type) { return type && floatTypeOf(type->elem_type()); }

  /// Precondition: isInput() of its type.
  void addInput(const std::string& tensor, DType dtype) {
    const ::onnx::TypeProto::Tensor& type = *m_reading.type(tensor);
    if (!m_dtype) m_dtype = dtype;
    const std::string id = m_ids.of(tensor);
    m_inputs.push_back({{"id", id}, {"dtype", dtypeName(dtype)}, {"shape", m_symbols.shapeOf(type.shape())}});
    m_ports.emplace(tensor, id);
  }

  // ---- ops

  void findOperations() {
    std::deque<std::string> wanted;
    for (const auto& output : graph().output()) wanted.push_back(output.name());
    for (; !wanted.empty(); wanted.pop_front()) {
      const std::string& tensor = m_reading.source(wanted.front());
      if (m_ports.contains(tensor) || !m_seen.insert(tensor).second) continue;
      std::optional<FoundOperation> found;
      if (computesFloats(tensor) && !m_known.tensors.contains(tensor)) found = operationOf(tensor);
      if (found) {
        for (const auto& [port, input] : found->inputs) wanted.push_back(input);
        add(tensor, std::move(*found));
      } else {
        addUnknown(tensor, wanted);
      }
    }
    sortOperations();
  }

  /// Whatever gives a tensor another shape is a Reshape, to what is known of the shape.
  std::optional<FoundOperation> operationOf(const std::string& tensor) {
    std::optional<FoundOperation> found = operationAt(m_reading, tensor);
    const ::onnx::NodeProto* const node = m_reading.maker(tensor);
    const bool isView = found ? found->operation == "Reshape" : node && isViewNode(*node);
    const auto* const type = m_reading.type(tensor);
    if (!isView || !type) return found;
    if (!found) found = FoundOperation{.operation = "Reshape", .inputs = {{"x", inputOf(*node, 0)}}};
    found->attributes["shape"] = m_symbols.shapeOf(type->shape());
    return found;
  }

  /// Sums and products of extents are no ops.
  bool computesFloats(const std::string& tensor) const {
    const std::int32_t type = m_reading.elementType(tensor);
    return type == 0 || floatTypeOf(type);
  }

  void add(const std::string& tensor, FoundOperation found) {
    for (const std::string& output : outputsOf(found, tensor)) {
      m_ports.emplace(output, "");  // until it has a name
      m_made.insert(output);
      m_seen.insert(output);
    }
    // Exporters fold the conversion of a weight to f32, and convert what is made with it back.
    if (const auto dtype = m_reading.readAs(tensor); dtype && found.dtype == DType::F32) found.dtype = dtype;
    m_isMixed = m_isMixed || (found.dtype && m_dtype && *found.dtype != *m_dtype);
    m_operations.push_back({.id = "",
                            .tensor = found.outputs.empty() ? tensor : found.outputs.front(),
                            .found = std::move(found),
                            .position = m_reading.position(tensor)});
  }

  /// In the order in which they run, so that numbers behind names go up.
  void nameOperations() {
    for (Operation& each : m_operations) {
      each.id = m_ids.of(nameOf(*m_reading.maker(each.tensor), each.found.operation));
      m_ports[each.tensor] = each.id + ".y";
      for (std::size_t i = 1; i < each.found.outputs.size(); ++i)
        m_ports[each.found.outputs[i]] = fmt::format("{}.y{}", each.id, i);
      if (!each.found.note.empty()) m_noted[each.found.note].push_back(each.id);
    }
  }

  /// Goes on behind it, so that all are named at once.
  void addUnknown(const std::string& tensor, std::deque<std::string>& wanted) {
    const ::onnx::NodeProto* const node = m_reading.maker(tensor);
    if (!node) {
      if (!m_reading.type(tensor)) m_unknown.push_back(fmt::format("{} (a tensor that nobody makes)", shown(tensor)));
      return;
    }
    if (m_reading.constant(tensor)) return m_unknown.push_back(fmt::format("{} (a constant)", shown(tensor)));
    if (!m_unknownNodes.insert(node).second) return;
    std::vector<std::string> inputs;
    for (const std::string& input : readBy(*node))
      if (!m_reading.constant(input)) inputs.push_back(input);
    wanted.insert(wanted.end(), inputs.begin(), inputs.end());
    leaveOut(*node, tensor, inputs);
  }

  /// Who asks for a shape only needs no values.
  void leaveOut(const ::onnx::NodeProto& node, const std::string& tensor, const std::vector<std::string>& inputs) {
    LeftOut left{
        .name = fmt::format("{} ({})", shown(node.name().empty() ? tensor : node.name()), shown(node.op_type())),
        .node = &node,
        .position = m_reading.position(tensor)};
    if (node.op_type() != "Shape")
      for (const std::string& input : inputs) left.part.inputs.push_back(m_reading.source(input));
    left.part.outputs.assign(node.output().begin(), node.output().end());
    m_leftOut.push_back(std::move(left));
  }

  bool hasUnknown() const { return !m_unknown.empty() || !m_leftOut.empty(); }

  std::vector<std::string> unknownNames() const {
    std::vector<std::string> names = m_unknown;
    for (const LeftOut& left : m_leftOut) names.push_back(left.name);
    return names;
  }

  std::string unknownText(const char* orBetween = "") const {
    const std::vector<std::string> names = unknownNames();
    return fmt::format("{} of {} nodes are no ops of Fuseline{}: {}.", names.size(), graph().node_size(), orBetween,
                       nameList(names));
  }

  Error notUnderstood() const {
    if (!hasUnknown())
      return Error{fmt::format("{}: no node between its inputs and outputs is an op of Fuseline.", m_name)};
    const char* const next = m_operations.empty() ? "No other node is left." : "Without --strict the rest is imported.";
    const std::string reason = m_known.reason.empty() ? "" : fmt::format(" {}", m_known.reason);
    return Error{fmt::format("{}: {}{} {}", m_name, unknownText(), reason, next)};
  }

  // ---- what is left where nodes are left out

  /// What stands between ops becomes an External. What ops read of other nodes that are none becomes an input, what
  /// such nodes read of ops an output.
  Result<void> cutOut() {
    leaveOutIslands();
    joinGates(m_operations, m_reading, usesOfTensors());
    nameOperations();
    addExternals();
    for (const Operation& each : m_operations)
      for (const auto& [port, tensor] : each.found.inputs)
        if (Result<void> named = cutInput(m_reading.source(tensor), each.found); !named) misfit(each, named.error());
    if (!m_misfits.tensors.empty()) return Error{m_misfits.reason};
    for (const auto& output : graph().output()) addOutput(output.name());
    for (const LeftOut& left : m_leftOut) cutOutputs(left);
    if (m_outputs.empty()) addLastOutputs();
    return {};
  }

  /// An op whose input nothing is known of makes nothing that is known for the ops behind it.
  void misfit(const Operation& each, const Error& reason) {
    if (m_misfits.tensors.empty()) m_misfits.reason = reason.message;
    m_misfits.tensors.insert(each.tensor);
    m_ports.erase(each.tensor);
  }

  TensorUses usesOfTensors() const {
    TensorUses uses;
    for (const Operation& each : m_operations)
      for (const auto& [port, tensor] : each.found.inputs) ++uses[m_reading.source(tensor)];
    for (const LeftOut& left : m_leftOut)
      for (const std::string& tensor : left.part.inputs) ++uses[tensor];
    for (const auto& output : graph().output()) ++uses[m_reading.source(output.name())];
    return uses;
  }

  /// What an External makes is drawn, and so would say nothing.
  void addOutput(const std::string& tensor) {
    const std::string& source = m_reading.source(tensor);
    if (m_externalTensors.contains(source))
      m_drawnOutputs.push_back(shown(tensor));
    else if (m_made.contains(source))
      m_outputs.push_back(tensor);
    m_outputSources.insert(source);
  }

  /// Where Externals make all outputs of the model: what is computed for nobody but them.
  void addLastOutputs() {
    std::set<std::string> read;
    for (const Operation& each : m_operations)
      for (const auto& [port, tensor] : each.found.inputs)
        if (each.found.operation != "External") read.insert(m_reading.source(tensor));
    for (const Operation& each : m_operations)
      if (each.found.operation != "External" && !read.contains(each.tensor)) m_outputs.push_back(each.tensor);
  }

  /// Ops between nodes that are none are left out, too, unless a layer is among them: a scale within attention.
  void leaveOutIslands() {
    std::set<std::string> kept;  // tensors
    for (const auto& [tensor, port] : m_ports)
      if (!m_made.contains(tensor)) kept.insert(tensor);
    for (const auto& output : graph().output()) kept.insert(m_reading.source(output.name()));
    for (std::size_t before = 0; before != kept.size();) {
      before = kept.size();
      // Both ways, so that it goes along a chain at once.
      for (const Operation& each : m_operations) keepNeighbours(each, kept);
      for (const Operation& each : m_operations | std::views::reverse) keepNeighbours(each, kept);
    }
    const auto isKept = [&](const Operation& each) { return kept.contains(each.tensor); };
    if (std::ranges::none_of(m_operations, isKept)) return;  // then there is nothing else
    for (const Operation& each : m_operations)
      if (!isKept(each)) leaveOutOperation(each);
    std::erase_if(m_operations, std::not_fn(isKept));
  }

  /// Keeps what an op reads and makes, if it is a layer or one of these is kept.
  void keepNeighbours(const Operation& each, std::set<std::string>& kept) const {
    const auto isKept = [&](const auto& input) { return kept.contains(m_reading.source(input.second)); };
    const std::vector<std::string> outputs = outputsOf(each.found, each.tensor);
    const bool isRead = std::ranges::any_of(outputs, [&](const std::string& output) { return kept.contains(output); });
    if (!each.found.dtype && !each.found.isWhole && !isRead && std::ranges::none_of(each.found.inputs, isKept)) return;
    kept.insert(outputs.begin(), outputs.end());
    for (const auto& [port, tensor] : each.found.inputs)
      if (m_made.contains(m_reading.source(tensor))) kept.insert(m_reading.source(tensor));
  }

  void leaveOutOperation(const Operation& each) {
    std::vector<std::string> inputs;
    for (const auto& [port, tensor] : each.found.inputs) inputs.push_back(tensor);
    leaveOut(*m_reading.maker(each.tensor), each.tensor, inputs);
    m_made.erase(each.tensor);
    m_ports.erase(each.tensor);
  }

  Result<void> cutInput(const std::string& tensor, const FoundOperation& reader) {
    if (m_ports.contains(tensor)) return {};
    const auto* const type = m_reading.type(tensor);
    if (!isInput(type))
      return Error{
          fmt::format("{}: the {} {} is {}, but a pipeline's inputs are float32, float16 or bfloat16, with a shape. {}",
                      m_name, m_reading.maker(tensor) ? "tensor" : "input", shown(tensor),
                      type ? onnxTypeName(type->elem_type()) : "without a shape",
                      type ? "Cut the model behind it, or convert it." : unknownShapeText(m_reading, tensor))};
    addInput(tensor, dtypeOf(tensor).value_or(*floatTypeOf(type->elem_type())));
    learnFrom(reader, m_inputs.back()["shape"]);
    m_cutInputs.push_back(shown(tensor));
    return {};
  }

  /// Of what is computed in f32 and then converted by all who read it, what they read. Nothing: it is not known, which
  /// isInput() of its type would be.
  std::optional<DType> dtypeOf(const std::string& tensor) const {
    const std::optional<DType> dtype = floatTypeOf(m_reading.elementType(tensor));
    return dtype == DType::F32 ? m_reading.readAs(tensor).value_or(*dtype) : dtype;
  }

  void cutOutputs(const LeftOut& left) {
    for (const std::string& tensor : left.part.inputs) {
      const bool isDrawn = m_externalTensors.contains(tensor);
      if (isDrawn || !m_made.contains(tensor) || !m_outputSources.insert(tensor).second) continue;
      m_outputs.push_back(tensor);
      m_cutOutputs.push_back(shown(tensor));
    }
  }

  std::string cutNote() const {
    std::string note = unknownText(", or stand between such") + " They were left out";
    if (!m_cutInputs.empty()) note += fmt::format("; what they make became inputs: {}", nameList(m_cutInputs));
    if (!m_cutOutputs.empty()) note += fmt::format("; what they read became outputs: {}", nameList(m_cutOutputs));
    return note + ".";
  }

  // ---- what stands for nodes between ops

  /// Each group of nodes that computes with what ops make, for other ops.
  void addExternals() {
    for (const Operation& each : m_operations)
      if (each.found.attributes.contains("in_features"))
        m_featuresRead[m_reading.source(each.found.inputs[0].second)] =
            each.found.attributes["in_features"].get<std::int64_t>();
    std::vector<GraphPart> parts;
    const std::vector<std::size_t> order = partsInOrder(parts);
    std::set<std::string> given;
    for (const auto& [tensor, port] : m_ports)
      if (!m_made.contains(tensor)) given.insert(tensor);
    std::set<std::size_t> used;
    for (const Region& region : regionsOf(parts, given)) {
      std::vector<std::size_t> members;
      for (const std::size_t part : region.parts) members.push_back(order[part]);
      if (addExternal(region, members)) used.insert(members.begin(), members.end());
    }
    std::vector<LeftOut> left;
    for (std::size_t i = 0; i < m_leftOut.size(); ++i)
      if (!used.contains(i)) left.push_back(std::move(m_leftOut[i]));
    m_leftOut = std::move(left);
  }

  /// As the nodes stand in the model; gives the number of each among what was left out.
  std::vector<std::size_t> partsInOrder(std::vector<GraphPart>& parts) const {
    std::multimap<int, std::pair<GraphPart, std::size_t>> byPosition;
    for (const Operation& each : m_operations) {
      GraphPart part{.isOperation = true, .inputs = {}, .outputs = outputsOf(each.found, each.tensor)};
      for (const auto& [port, tensor] : each.found.inputs) part.inputs.push_back(m_reading.source(tensor));
      byPosition.emplace(each.position, std::pair(std::move(part), std::size_t{0}));
    }
    for (std::size_t i = 0; i < m_leftOut.size(); ++i)
      byPosition.emplace(m_leftOut[i].position, std::pair(m_leftOut[i].part, i));
    std::vector<std::size_t> order;
    for (auto& [position, part] : byPosition) {
      parts.push_back(std::move(part.first));
      order.push_back(part.second);
    }
    return order;
  }

  /// False: nothing that it reads is known, or the model does not say the shape of what it makes.
  bool addExternal(const Region& region, const std::vector<std::size_t>& members) {
    const auto isKnown = [this](const std::string& tensor) { return isInput(m_reading.type(tensor)); };
    const auto isMisfit = [this](const std::string& tensor) { return m_known.tensors.contains(tensor); };
    if (!std::ranges::all_of(region.outputs, isKnown) || isMisfit(region.outputs.front())) return false;
    FoundOperation found{.operation = "External"};
    for (const std::string& tensor : region.inputs) {
      // What a group makes that stays out becomes an input, as where ops read it.
      if (!m_ports.contains(tensor) && !cutInput(tensor, found)) return false;
      found.inputs.emplace_back(portNumbered("x", found.inputs.size()), tensor);
    }
    ModelNodes nodes;
    for (const std::size_t member : members) nodes.push_back(m_leftOut[member].node);
    found.attributes = externalAttributes(found, region.outputs, nodes);
    const std::string id = m_ids.of(nameOf(nodes));
    keepNodesOf(id, region, found);
    for (std::size_t i = 0; i < region.outputs.size(); ++i) {
      m_ports.emplace(region.outputs[i], fmt::format("{}.{}", id, portNumbered("y", i)));
      m_made.insert(region.outputs[i]);
      m_externalTensors.insert(region.outputs[i]);
    }
    m_numInExternals += members.size();
    m_externals.push_back(id);
    m_operations.push_back({.id = id,
                            .tensor = region.outputs.front(),
                            .found = std::move(found),
                            .position = m_reading.position(region.outputs.front())});
    return true;
  }

  /// So that an export to ONNX can write them again.
  void keepNodesOf(const std::string& id, const Region& region, FoundOperation& found) {
    std::vector<std::string> inputs;
    for (const auto& [port, tensor] : found.inputs) inputs.push_back(tensor);
    std::optional<KeptNodes> kept = keepNodes(m_reading, m_opsets, inputs, region.outputs, m_ports, m_options.folder);
    if (!kept) return;
    found.attributes["nodes"] = kept->text;
    for (KeptConstant& constant : kept->constants) m_keptConstants.emplace_back(id, std::move(constant));
  }

  Json externalAttributes(const FoundOperation& found, const std::vector<std::string>& made, const ModelNodes& nodes) {
    std::vector<std::string> others, outputs;
    for (std::size_t i = 1; i < found.inputs.size(); ++i) others.push_back(found.inputs[i].first);
    for (std::size_t i = 0; i < made.size(); ++i)
      outputs.push_back(fmt::format("{} = {}", portNumbered("y", i), declared(made[i], found.inputs.front().second)));
    Json attributes = Json::object();
    if (!others.empty()) attributes["inputs"] = fmt::format("{}", fmt::join(others, ", "));
    attributes["outputs"] = fmt::format("{}", fmt::join(outputs, ", "));
    attributes["description"] = descriptionOf(nodes);
    return attributes;
  }

  /// "[batch, 64]", with the dtype where it is not known to be that of x: in a model of several, nodes may convert it.
  std::string declared(const std::string& tensor, const std::string& x) {
    const ::onnx::TypeProto::Tensor& type = *m_reading.type(tensor);
    Json extents = m_symbols.shapeOf(type.shape());
    if (const auto known = m_featuresRead.find(tensor); known != m_featuresRead.end() && !extents.empty())
      extents.back() = known->second;
    std::vector<std::string> texts;
    for (const Json& extent : extents) texts.push_back(extent.is_string() ? extent.get<std::string>() : extent.dump());
    const bool isOfX = dtypeOf(x) == dtypeOf(tensor) && !m_reading.isMixed();
    return fmt::format("[{}]{}{}", fmt::join(texts, ", "), isOfX ? "" : " ",
                       isOfX ? "" : dtypeName(dtypeOf(tensor).value_or(*floatTypeOf(type.elem_type()))));
  }

  std::string externalNote(const FoldedPlaces& places) const {
    std::string note = externalsText(m_numInExternals, places.of(m_externals));
    if (!m_drawnOutputs.empty())
      note += fmt::format(" It makes outputs of the model, which are none here: {}.", nameList(m_drawnOutputs));
    return note;
  }

  // ---- residuals

  /// A tensor that one sum and other ops read goes through a MakeExtraOutput, as in te.ops: there fusions know it.
  void splitResiduals() {
    m_uses = usesOfTensors();
    std::vector<Operation> branches;
    for (Operation& each : m_operations)
      if (each.found.operation == "AddExtraInput") splitResidual(each.found.inputs, branches);
    m_operations.insert(m_operations.end(), branches.begin(), branches.end());
    sortOperations();
  }

  /// The main branch is the one that nobody else reads.
  void splitResidual(std::vector<std::pair<std::string, std::string>>& inputs, std::vector<Operation>& branches) {
    const auto isBranch = [&](int index) {
      return m_uses[m_reading.source(inputs[static_cast<std::size_t>(index)].second)] > 1;
    };
    if (isBranch(0) && !isBranch(1)) std::swap(inputs[0].second, inputs[1].second);
    const std::string tensor = m_reading.source(inputs[1].second);
    if (!isBranch(1) || isBranch(0) || m_branches.contains(tensor)) return;
    const std::string id = m_ids.of("residual");
    branches.push_back({.id = id,
                        .tensor = tensor,
                        .found = {.operation = "MakeExtraOutput", .inputs = {{"x", tensor}}},
                        .position = m_reading.position(tensor)});
    m_branches.emplace(tensor, id);
  }

  void sortOperations() { std::ranges::stable_sort(m_operations, {}, &Operation::position); }

  // ---- the document

  std::string portOf(const std::string& tensor, const Operation* reader = nullptr, std::string_view port = {}) const {
    const std::string& source = m_reading.source(tensor);
    const auto branch = m_branches.find(source);
    const bool isBranched = branch != m_branches.end() && !(reader && reader->id == branch->second);
    if (!isBranched) return m_ports.at(source);
    return fmt::format("{}.{}", branch->second, port == "extra" ? "extra" : "y");
  }

  Json attributesOf(const FoundOperation& found) const {
    Json attributes = found.attributes;
    for (Json& value : attributes)
      if (value.is_number_float()) value = shortestReal(value.get<double>());
    if (m_isMixed && found.dtype) attributes["dtype"] = dtypeName(*found.dtype);
    return attributes;
  }

  Result<ImportedPipeline> pipeline() {
    Json ops = Json::array(), wires = Json::array(), outputs = Json::array();
    for (const Operation& each : m_operations) {
      ops.push_back({{"id", each.id}, {"op", each.found.operation}, {"attributes", attributesOf(each.found)}});
      for (const auto& [port, tensor] : each.found.inputs)
        wires.push_back({portOf(tensor, &each, port), each.id + "." + port});
    }
    for (const std::string& output : m_outputs) {
      const std::string id = m_ids.of(output);
      outputs.push_back({{"id", id}, {"from", portOf(output)}});
      m_outputIds.emplace(id, output);
    }
    return read({{"format", "fuseline-pipeline"},
                 {"formatVersion", {{"major", 1}, {"minor", 0}}},
                 {"symbols", m_symbols.all()},
                 {"pipeline", {{"inputs", m_inputs}, {"ops", ops}, {"wires", wires}, {"outputs", outputs}}}});
  }

  Result<ImportedPipeline> read(const Json& json) {
    LoadedDocument loaded = parseDocument(json.dump(2, ' ', false, Json::error_handler_t::replace));
    LoweredGraph lowered{.graph = {}, .diagnostics = loaded.diagnostics};
    if (!hasErrors(lowered.diagnostics)) lowered = lower(loaded.document, {.pass = PassKind::Forward});
    if (hasErrors(lowered.diagnostics)) {
      noteMisfits(lowered.diagnostics);
      return Error{fmt::format("{}: its nodes are ops of Fuseline, but they do not fit together:\n{}", m_name,
                               errorText(lowered.diagnostics, m_name))};
    }
    tryOtherExtents(loaded.document);
    ImportedPipeline imported{.document = std::move(loaded.document)};
    const FoldedPlaces places = fold(imported);
    if (hasUnknown()) imported.notes.push_back(cutNote());
    if (!m_externals.empty()) imported.notes.push_back(externalNote(places));
    imported.notes.insert(imported.notes.end(), m_rewrite.reasons().begin(), m_rewrite.reasons().end());
    if (!m_prepared.guessedBranches().empty())
      imported.notes.push_back(
          fmt::format("Only a run knows which branch these nodes If take; here it is the larger: {}.",
                      nameList(shownAll(m_prepared.guessedBranches()))));
    for (const auto& [note, ops] : m_noted)
      imported.notes.push_back(fmt::format("{}: {}", nameList(places.of(ops)), note));
    noteSymbols(imported.notes);
    imported.tensors = tensorNames(places);
    const auto find = [this](const Node& node, int slot) { return weightOf(node, slot); };
    addWeights(imported, lowered.graph, {.find = find, .folder = m_options.folder}, m_options, places);
    addKeptConstants(imported, places);
    return imported;
  }

  /// Beside the parameters, of the nodes that Externals stand for.
  void addKeptConstants(ImportedPipeline& imported, const FoldedPlaces& places) const {
    if (!m_options.takesWeights || imported.weightsProblem) return;
    for (const auto& [tensor, numbers] : m_rewrite.constants())
      if (const auto port = m_ports.find(tensor); port != m_ports.end())
        imported.weights.emplace_back(port->second, numbers);
    for (const auto& [id, constant] : m_keptConstants) {
      Result<Tensor> tensor = keptTensor(constant, m_options.folder);
      if (!tensor) {
        imported.weightsProblem = tensor.error();
        return;
      }
      imported.weights.emplace_back(places.of(fmt::format("{}.{}", id, constant.name)), std::move(*tensor));
    }
  }

  std::map<std::string, std::string> tensorNames(const FoldedPlaces& places) const {
    std::map<std::string, std::string> names;
    for (const auto& [tensor, port] : m_ports)
      if (!m_made.contains(tensor) || m_externalTensors.contains(tensor)) names[places.of(port)] = wholeText(tensor);
    for (const auto& [id, tensor] : m_outputIds) names[id] = wholeText(tensor);
    return names;
  }

  void noteSymbols(std::vector<std::string>& notes) const {
    for (const auto& [symbol, value] : m_symbols.all().items())
      notes.push_back(m_prepared.literals().contains(symbol)
                          ? fmt::format("{0} is {1} in the model, and a symbol here: --set {0}=N runs it with another.",
                                        symbol, value.dump())
                          : fmt::format("{} is any extent in the model, and {} here: set the symbol as you need it.",
                                        symbol, value.dump()));
  }

  /// Ops that do not fit, or whose inputs do not.
  void noteMisfits(const std::vector<Diagnostic>& diagnostics) {
    for (const Diagnostic& diagnostic : diagnostics) {
      const auto operation = std::ranges::find(m_operations, diagnostic.node, &Operation::id);
      if (diagnostic.severity != Severity::Error || operation == m_operations.end()) continue;
      if (m_misfits.tensors.empty()) m_misfits.reason = diagnostic.message;
      m_misfits.tensors.insert(operation->tensor);
    }
  }

  /// Extents of two names may be the same only by chance, and a number of the model may not stand for what its symbol
  /// does: with one symbol doubled, everything must fit as well.
  void tryOtherExtents(const PipelineDocument& document) {
    for (const auto& [symbol, value] : m_symbols.all().items()) {
      const LoweringOptions doubled{.pass = PassKind::Forward, .symbols = {{symbol, 2 * value.get<std::int64_t>()}}};
      const LoweredGraph lowered = lower(document, doubled);
      if (!hasErrors(lowered.diagnostics)) continue;
      if (m_prepared.literals().contains(symbol))
        m_misfits.literals.insert(symbol);
      else
        noteMisfits(lowered.diagnostics);
    }
  }

  FoldedPlaces fold(ImportedPipeline& imported) const {
    std::optional<FoldedRepeats> folded = m_options.keepsFlat ? std::nullopt : foldRepeats(imported.document);
    if (!folded || !applyEdit(imported.document, folded->edit)) return FoldedPlaces();
    imported.notes.push_back(
        fmt::format("{} layers that are the same became instances of block {}.", folded->numInstances, folded->block));
    return FoldedPlaces(std::move(folded->places));
  }

  /// Of the op that the node was made of.
  std::optional<FoundWeight> weightOf(const Node& node, int slot) const {
    const std::string name = node.parameterName(slot);
    const auto operation = std::ranges::find(m_operations, node.owner, &Operation::id);
    if (operation == m_operations.end()) return std::nullopt;
    const std::vector<FoundWeight>& weights = operation->found.weights;
    const auto weight = std::ranges::find(weights, name.substr(name.rfind('.') + 1), &FoundWeight::parameter);
    return weight == weights.end() ? std::nullopt : std::optional(*weight);
  }

  OnnxImportOptions m_options;
  OnnxReading m_reading;
  const OnnxOpsets& m_opsets;
  std::string m_name;
  ImportedIds m_ids;
  ImportedSymbols m_symbols;
  const OnnxPreparation& m_prepared;
  const AttentionRewrite& m_rewrite;
  const Misfits& m_known;
  Misfits m_misfits;
  std::optional<DType> m_dtype;  // of the first input
  bool m_isMixed = false;        // an op has weights of another dtype
  Json m_inputs = Json::array();
  std::map<std::string, std::string, std::less<>> m_ports;  // by tensor
  std::set<std::string> m_seen;
  std::vector<Operation> m_operations;
  TensorUses m_uses;                                        // at the end
  std::map<std::string, std::string> m_branches;            // the MakeExtraOutput behind a tensor
  std::map<std::string, std::vector<std::string>> m_noted;  // ops by what there is to say of them
  std::vector<std::string> m_unknown;                       // tensors that no node makes
  std::set<const ::onnx::NodeProto*> m_unknownNodes;
  std::vector<LeftOut> m_leftOut;
  std::vector<std::string> m_externals;  // ids
  std::set<std::string> m_externalTensors;
  std::vector<std::pair<std::string, KeptConstant>> m_keptConstants;  // by ids of Externals
  std::size_t m_numInExternals = 0;
  std::vector<std::string> m_drawnOutputs;
  std::set<std::string> m_made;        // by ops
  std::vector<std::string> m_outputs;  // tensors
  std::set<std::string> m_outputSources;
  std::map<std::string, std::string> m_outputIds;      // tensors by ids
  std::map<std::string, std::int64_t> m_featuresRead;  // of a tensor by a layer: the last extent
  std::vector<std::string> m_cutInputs, m_cutOutputs;
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
  const AttentionRewrite rewrite(*model.mutable_graph(),
                                 {.symbols = prepared.symbols(), .misfits = known.tensors, .folder = options.folder});
  GraphImport attempt(prepared, rewrite, model.opset_import(), name, known);
  Result<ImportedPipeline> imported = attempt.run(options);
  found = attempt.misfits();
  return imported;
}

/// Ops that do not fit are none in the next attempt. Each attempt finds another, so that there is an end.
Result<ImportedPipeline> importGraph(::onnx::ModelProto& model, std::string_view name,
                                     const OnnxImportOptions& options) {
  OnnxPreparation prepared(model);
  prepared.prepare();
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

/// That of an exported model, whose graph is still what was exported.
std::optional<ImportedPipeline> writtenPipeline(const ::onnx::ModelProto& model) {
  const std::string text = metadataOf(model, kOnnxPipelineKey);
  if (text.empty() || metadataOf(model, kOnnxGraphHashKey) != onnxGraphHash(model.graph())) return std::nullopt;
  LoadedDocument loaded = parseDocument(text);
  return hasErrors(loaded.diagnostics) ? std::nullopt
                                       : std::optional(ImportedPipeline{.document = std::move(loaded.document)});
}

/// Exported weights are called like parameters. Quantized ones are codes, which say less than the weights.
ImportedPipeline withWeights(ImportedPipeline written, const ::onnx::GraphProto& graph,
                             const OnnxImportOptions& options) {
  if (!options.takesWeights) return written;
  const LoweredGraph lowered = lower(written.document, {.pass = PassKind::Forward});
  const auto find = [&](const Node& node, int slot) -> std::optional<FoundWeight> {
    const auto constant = std::ranges::find(graph.initializer(), node.parameterName(slot), &::onnx::TensorProto::name);
    if (constant == graph.initializer().end() || !floatTypeOf(constant->data_type())) return std::nullopt;
    return FoundWeight{node.parameterName(slot), &*constant};
  };
  addWeights(written, lowered.graph, {.find = find, .folder = options.folder}, options);
  return written;
}

}  // namespace

bool isOnnxFile(const std::filesystem::path& path) { return path.extension() == ".onnx"; }

Result<ImportedPipeline> importOnnxModel(const std::string& bytes, std::string_view name,
                                         const OnnxImportOptions& options) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || !model.has_graph() || model.graph().output_size() == 0)
    return Error{
        fmt::format("{}: expected an ONNX model with a graph that has outputs; this is none, or cut off.", name)};
  if (std::optional<ImportedPipeline> written = writtenPipeline(model))
    return withWeights(std::move(*written), model.graph(), options);
  splitFusedNodes(*model.mutable_graph());
  return importGraph(model, name, options);
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

Result<LoadedDocument> loadOrImportDocument(const std::filesystem::path& path) {
  if (!isOnnxFile(path)) return loadDocument(path);
  Result<ImportedPipeline> imported = importOnnx(path);
  if (!imported) return imported.error();
  return LoadedDocument{
      .document = std::move(imported->document), .isTakenOut = true, .notes = std::move(imported->notes)};
}

}  // namespace fuseline
