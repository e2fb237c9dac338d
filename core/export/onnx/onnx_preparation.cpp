// Facts go from node to node in one direction, again until nothing new is learned of a symbol.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_preparation.h"

#include "core/export/onnx/import/flat_layers.h"
#include "core/export/onnx/onnx_functions.h"
#include "core/export/onnx/onnx_node_facts.h"
#include "core/export/onnx/onnx_node_order.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_slices.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr int kMaxPasses = 12;

// ---- constants

/// "value_float" and its like as a tensor.
void makeTensor(::onnx::AttributeProto& attribute) {
  ::onnx::TensorProto tensor;
  const bool isReal = attribute.name().starts_with("value_float");
  tensor.set_data_type(isReal ? ::onnx::TensorProto::FLOAT : ::onnx::TensorProto::INT64);
  if (attribute.name() == "value_float") tensor.add_float_data(attribute.f());
  if (attribute.name() == "value_int") tensor.add_int64_data(attribute.i());
  for (const float value : attribute.floats()) tensor.add_float_data(value);
  for (const std::int64_t value : attribute.ints()) tensor.add_int64_data(value);
  if (attribute.name().ends_with('s')) tensor.add_dims(std::max(attribute.floats_size(), attribute.ints_size()));
  attribute.Clear();
  attribute.set_name("value");
  attribute.set_type(::onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = std::move(tensor);
}

void unifyConstants(::onnx::GraphProto& graph) {
  for (::onnx::NodeProto& node : *graph.mutable_node()) {
    if (node.op_type() != "Constant") continue;
    for (::onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.name().starts_with("value_float") || attribute.name().starts_with("value_int"))
        makeTensor(attribute);
  }
}

/// False: nothing is written of elements of this type.
bool writeElements(::onnx::TensorProto& tensor, const OnnxFact& fact) {
  tensor.set_data_type(fact.elementType);
  for (const OnnxExtent& extent : *fact.shape) tensor.add_dims(*extent.number());
  for (const OnnxExtent& value : *fact.values) {
    switch (fact.elementType) {
      case ::onnx::TensorProto::INT64: tensor.add_int64_data(*value.number()); break;
      case ::onnx::TensorProto::INT32:
      case ::onnx::TensorProto::BOOL: tensor.add_int32_data(static_cast<std::int32_t>(*value.number())); break;
      case ::onnx::TensorProto::FLOAT: tensor.add_float_data(static_cast<float>(*value.number())); break;
      default: return false;
    }
  }
  return true;
}

OnnxFact constantFact(const ::onnx::TensorProto& tensor) {
  return {.elementType = tensor.data_type(),
          .shape = OnnxExtents(tensor.dims().begin(), tensor.dims().end()),
          .values = integersOf(tensor)};
}

// ---- extents of inputs

/// Symbol name of an input's axis with a number as extent: rows of a matrix, batch and sequence of other tensors.
/// Empty: it stays a number.
std::string literalName(const ::onnx::TypeProto::Tensor& type, int axis) {
  const bool isFloat = floatTypeOf(type.elem_type()).has_value();
  const int rank = type.shape().dim_size();
  if (rank < 2) return "";
  if (axis == 0) return isFloat && rank == 2 ? "M" : "B";
  const bool isSequence = axis == 1 && (isFloat ? rank == 3 : rank == 2);
  return isSequence ? "S" : "";
}

}  // namespace

OnnxPreparation::OnnxPreparation(::onnx::ModelProto& model, std::map<std::string, std::int64_t> defaults)
    : m_graph(*model.mutable_graph()), m_defaults(std::move(defaults)) {
  for (const auto& opset : model.opset_import())
    if (opset.domain().empty()) m_opset = opset.version();
  inlineFunctions(model);
  unifyConstants(m_graph);
  sortNodes(m_graph);
  noteDeclared();
}

void OnnxPreparation::noteDeclared() {
  for (const auto* values : {&m_graph.input(), &m_graph.value_info(), &m_graph.output()})
    for (const ::onnx::ValueInfoProto& value : *values)
      if (value.type().has_tensor_type()) m_declared.emplace(value.name(), value.type());
}

void OnnxPreparation::prepare(const std::set<std::string>& asNumbers) {
  m_symbols = OnnxFactSymbols(asNumbers, m_defaults);
  do {
    inferUntilKnown();
  } while (takeBranches(false) || takeBranches(true));
  setComputedDefaults();
  const auto lookup = [this](const std::string& tensor) { return find(tensor); };
  joinSlices(m_graph, lookup, m_opset);
  unflattenLayers(m_graph, lookup);
  writeTypes();
  writeConstants();
}

// ---- facts

const OnnxFact* OnnxPreparation::find(const std::string& tensor) const {
  const auto found = m_facts.find(tensor);
  return found == m_facts.end() ? nullptr : &found->second;
}

void OnnxPreparation::inferUntilKnown() {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    m_facts.clear();
    noteConstants(m_graph);
    noteInputs();
    inferNodes(m_graph);
    if (!m_symbols.takeChanged()) return;
  }
}

void OnnxPreparation::noteConstants(const ::onnx::GraphProto& graph) {
  for (const ::onnx::TensorProto& tensor : graph.initializer())
    m_facts.insert_or_assign(tensor.name(), constantFact(tensor));
}

void OnnxPreparation::noteInputs() {
  for (const ::onnx::ValueInfoProto& input : m_graph.input())
    if (!m_facts.contains(input.name())) m_facts.emplace(input.name(), inputFact(input));
}

/// Another number for the batch of another input is another symbol; 1 next to a larger one is broadcast, and kept.
OnnxFact OnnxPreparation::inputFact(const ::onnx::ValueInfoProto& input) {
  const auto declared = m_declared.find(input.name());
  if (declared == m_declared.end()) return {};
  const ::onnx::TypeProto::Tensor& type = declared->second.tensor_type();
  OnnxFact fact{.elementType = type.elem_type()};
  if (!type.has_shape()) return fact;
  fact.shape.emplace();
  for (int axis = 0; axis < type.shape().dim_size(); ++axis) {
    const auto& extent = type.shape().dim(axis);
    const bool isOpen = extent.dim_value() > 0 && !isBroadcast(type, axis);
    const std::string literal = isOpen ? literalName(type, axis) : "";
    fact.shape->push_back(literal.empty() ? m_symbols.declared(extent, fmt::format("{}:{}", input.name(), axis))
                                          : m_symbols.ofLiteral(literal, extent.dim_value()));
  }
  if (!fact.shape->empty()) setBatchDefault(fact.shape->front(), type);
  return fact;
}

/// Is the extent 1, and that of a batch which another input has more of?
bool OnnxPreparation::isBroadcast(const ::onnx::TypeProto::Tensor& type, int axis) const {
  if (axis != 0 || type.shape().dim(0).dim_value() != 1) return false;
  return std::ranges::any_of(m_graph.input(), [&](const ::onnx::ValueInfoProto& other) {
    const auto declared = m_declared.find(other.name());
    if (declared == m_declared.end()) return false;
    const ::onnx::TypeProto::Tensor& its = declared->second.tensor_type();
    const bool isLarger =
        its.shape().dim_size() > 0 && its.shape().dim(0).dim_value() > 1 && literalName(its, 0) == literalName(type, 0);
    return isLarger && std::ranges::none_of(m_graph.initializer(),
                                            [&](const auto& constant) { return constant.name() == other.name(); });
  });
}

/// One of a batch; the rows of a matrix are not meant.
void OnnxPreparation::setBatchDefault(const OnnxExtent& batch, const ::onnx::TypeProto::Tensor& type) {
  const std::optional<std::string> symbol = batch.singleSymbol();
  if (symbol && literalName(type, 0) == "B") m_symbols.setDefault(*symbol, 1);
}

std::set<std::string> OnnxPreparation::symbolsOfInputs() const {
  std::set<std::string> symbols;
  for (const ::onnx::ValueInfoProto& input : m_graph.input())
    if (const OnnxFact* const fact = find(input.name()); fact && fact->shape)
      for (const OnnxExtent& extent : *fact->shape)
        std::ranges::copy(extent.symbols(), std::inserter(symbols, symbols.end()));
  return symbols;
}

namespace {

/// The same tensor, with symbols and with numbers.
void learnDefaults(const OnnxFact& fact, const OnnxFact& inNumbers, const std::set<std::string>& known,
                   OnnxFactSymbols& symbols) {
  if (!fact.shape || !inNumbers.shape || inNumbers.shape->size() != fact.shape->size()) return;
  for (std::size_t axis = 0; axis < fact.shape->size(); ++axis) {
    const std::optional<std::string> symbol = (*fact.shape)[axis].singleSymbol();
    const std::optional<std::int64_t> number = (*inNumbers.shape)[axis].number();
    if (symbol && number && !known.contains(*symbol)) symbols.setDefault(*symbol, *number);
  }
}

}  // namespace

/// An extent that no polynomial of the inputs' symbols equals, such as min(S, 64), is a symbol of its own. Another pass
/// over the graph, with numbers, finds its default.
void OnnxPreparation::setComputedDefaults() {
  const std::set<std::string> ofInputs = symbolsOfInputs();
  const auto isOfInputs = [&](const auto& symbol) { return ofInputs.contains(symbol.first); };
  if (std::ranges::all_of(m_symbols.defaults(), isOfInputs)) return;
  OnnxFactSymbols symbols = m_symbols;
  Facts facts = std::move(m_facts);
  for (const std::string& symbol : ofInputs) m_symbols.useDefault(symbol);
  inferUntilKnown();
  for (const auto& [tensor, fact] : facts)
    if (const OnnxFact* const inNumbers = find(tensor)) learnDefaults(fact, *inNumbers, ofInputs, symbols);
  m_symbols = std::move(symbols);
  m_facts = std::move(facts);
}

void OnnxPreparation::inferNodes(const ::onnx::GraphProto& graph) {
  for (const ::onnx::NodeProto& node : graph.node()) inferNode(node);
}

void OnnxPreparation::inferNode(const ::onnx::NodeProto& node) {
  OnnxNodeFacts facts(node, m_symbols, [this](const std::string& tensor) { return find(tensor); });
  if (node.op_type() == "If") inferBranches(node, facts.outputs());
  if (node.op_type() == "Loop") inferLoop(node, facts.outputs());
  inferOnnxNode(facts);
  for (int i = 0; i < node.output_size(); ++i)
    mergeDeclared(node.output(i), facts.outputs()[static_cast<std::size_t>(i)]);
  foldOnnxNode(facts);
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      m_facts.insert_or_assign(node.output(i), std::move(facts.outputs()[static_cast<std::size_t>(i)]));
}

namespace {

const ::onnx::GraphProto* subgraphOf(const ::onnx::NodeProto& node, std::string_view name) {
  const ::onnx::AttributeProto* const attribute = findAttribute(node, name);
  return attribute && attribute->has_g() ? &attribute->g() : nullptr;
}

/// The common part of both facts.
OnnxFact commonFact(const OnnxFact& a, const OnnxFact& b) {
  OnnxFact common{.elementType = a.elementType == 0 ? b.elementType : a.elementType};
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return common;
  common.shape = a.shape;
  for (std::size_t axis = 0; axis < a.shape->size(); ++axis)
    if (!((*a.shape)[axis] == (*b.shape)[axis])) (*common.shape)[axis] = OnnxExtent::unknown();
  return common;
}

void nameUnknown(OnnxFact& fact, const std::string& tensor, OnnxFactSymbols& symbols) {
  for (std::size_t axis = 0; fact.shape && axis < fact.shape->size(); ++axis)
    if ((*fact.shape)[axis].isUnknown()) (*fact.shape)[axis] = symbols.fresh(fmt::format("{}:{}", tensor, axis));
}

}  // namespace

void OnnxPreparation::inferBranches(const ::onnx::NodeProto& node, std::vector<OnnxFact>& outputs) {
  const auto *const yes = subgraphOf(node, "then_branch"), *const no = subgraphOf(node, "else_branch");
  if (!yes || !no) return;
  for (const auto* const branch : {yes, no}) {
    noteConstants(*branch);
    inferNodes(*branch);
  }
  for (int i = 0; i < node.output_size() && i < yes->output_size() && i < no->output_size(); ++i) {
    const OnnxFact *const a = find(yes->output(i).name()), *const b = find(no->output(i).name());
    OnnxFact& output = outputs[static_cast<std::size_t>(i)];
    if (a && b) output = commonFact(*a, *b);
    nameUnknown(output, node.output(i), m_symbols);
  }
}

/// Inputs of the body are a number, a condition, and the loop-carried tensors; its outputs are a condition, the latter,
/// and the tensors collected from each step.
void OnnxPreparation::inferLoop(const ::onnx::NodeProto& node, std::vector<OnnxFact>& outputs) {
  const auto* const body = subgraphOf(node, "body");
  if (!body) return;
  const int numCarried = std::max(0, body->input_size() - 2);
  noteConstants(*body);
  for (int i = 0; i < body->input_size(); ++i) {
    const OnnxFact* const given = i < 2 ? nullptr : find(inputOf(node, i));
    OnnxFact fact{.elementType =
                      i == 0 ? std::int32_t{::onnx::TensorProto::INT64} : std::int32_t{::onnx::TensorProto::BOOL}};
    if (i < 2) fact.shape = OnnxExtents{};
    m_facts.insert_or_assign(body->input(i).name(), given ? OnnxFact{given->elementType, given->shape} : fact);
  }
  inferNodes(*body);
  for (int i = 0; i < node.output_size() && i + 1 < body->output_size(); ++i) {
    const OnnxFact* const made = find(body->output(i + 1).name());
    const OnnxFact* const before = i < numCarried ? find(inputOf(node, i + 2)) : made;
    if (!made || !before) continue;
    OnnxFact& output = outputs[static_cast<std::size_t>(i)];
    output = commonFact(*made, *before);
    if (i >= numCarried && output.shape) output.shape->insert(output.shape->begin(), OnnxExtent::unknown());
    nameUnknown(output, node.output(i), m_symbols);
  }
}

/// The model may declare facts that no rule derives, and its numbers are right.
void OnnxPreparation::mergeDeclared(const std::string& tensor, OnnxFact& fact) {
  const auto found = m_declared.find(tensor);
  if (found == m_declared.end()) return;
  const ::onnx::TypeProto::Tensor& type = found->second.tensor_type();
  if (type.elem_type() != 0) fact.elementType = type.elem_type();
  if (!type.has_shape()) return;
  const auto rank = static_cast<std::size_t>(type.shape().dim_size());
  if (!fact.shape || fact.shape->size() != rank) fact.shape = OnnxExtents(rank, OnnxExtent::unknown());
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto& dimension = type.shape().dim(static_cast<int>(axis));
    OnnxExtent& extent = (*fact.shape)[axis];
    const bool isSaid = dimension.has_dim_value() || !dimension.dim_param().empty();
    if (!isSaid && !extent.isUnknown()) continue;
    const OnnxExtent given = m_symbols.declared(dimension, fmt::format("{}:{}", tensor, axis));
    if (extent.isUnknown() || m_symbols.isFresh(extent)) {
      m_symbols.equate(extent, given);
      extent = given;
    } else if (given.number() && (extent.number() || m_symbols.hasLiteral(extent)) &&
               m_symbols.valueOf(extent) != given.number()) {
      m_symbols.needNumber(extent);
      extent = given;
    }
  }
}

// ---- the graph

namespace {

int numNodesIn(const ::onnx::GraphProto& graph) {
  int count = graph.node_size();
  for (const ::onnx::NodeProto& node : graph.node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) count += numNodesIn(attribute.g());
  return count;
}

/// The branch's tensors under the names of the If.
void addBranch(::onnx::GraphProto branch, const ::onnx::NodeProto& node, ::onnx::GraphProto& graph) {
  for (::onnx::TensorProto& tensor : *branch.mutable_initializer()) *graph.add_initializer() = std::move(tensor);
  for (::onnx::ValueInfoProto& value : *branch.mutable_value_info()) *graph.add_value_info() = std::move(value);
  for (::onnx::NodeProto& inner : *branch.mutable_node()) *graph.add_node() = std::move(inner);
  for (int i = 0; i < node.output_size() && i < branch.output_size(); ++i) {
    ::onnx::NodeProto& identity = *graph.add_node();
    identity.set_op_type("Identity");
    identity.set_name(node.output(i));
    identity.add_input(branch.output(i).name());
    identity.add_output(node.output(i));
  }
}

}  // namespace

/// nullptr: the condition is not known, and is not guessed either.
const ::onnx::GraphProto* OnnxPreparation::branchOf(const ::onnx::NodeProto& node, bool isGuessing) {
  const auto *const yes = subgraphOf(node, "then_branch"), *const no = subgraphOf(node, "else_branch");
  if (node.op_type() != "If" || !yes || !no) return nullptr;
  const OnnxFact* const condition = find(inputOf(node, 0));
  const bool isKnown = condition && condition->values && condition->values->size() == 1;
  if (const auto value = isKnown ? condition->values->front().number() : std::nullopt) return *value == 0 ? no : yes;
  if (!isGuessing) return nullptr;
  m_guessedBranches.push_back(node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name());
  return numNodesIn(*yes) > numNodesIn(*no) ? yes : no;
}

/// True: a branch has taken the place of its If. Only one is guessed at a time, as others may follow from it.
bool OnnxPreparation::takeBranches(bool isGuessing) {
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
  nodes.Swap(m_graph.mutable_node());
  bool hasTaken = false;
  for (::onnx::NodeProto& node : nodes) {
    const auto* const branch = isGuessing && hasTaken ? nullptr : branchOf(node, isGuessing);
    hasTaken = hasTaken || branch;
    if (branch)
      addBranch(*branch, node, m_graph);
    else
      *m_graph.add_node() = std::move(node);
  }
  return hasTaken;
}

namespace {

void writeType(::onnx::ValueInfoProto& value, const OnnxFact& fact) {
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(fact.elementType);
  type.clear_shape();
  if (!fact.shape) return;
  auto& shape = *type.mutable_shape();
  for (const OnnxExtent& extent : *fact.shape) {
    auto& written = *shape.add_dim();
    if (const std::optional<std::int64_t> number = extent.number())
      written.set_dim_value(*number);
    else
      written.set_dim_param(extent.text());
  }
}

}  // namespace

void OnnxPreparation::writeTypes() {
  m_graph.clear_value_info();
  for (auto* const values : {m_graph.mutable_input(), m_graph.mutable_output()})
    for (::onnx::ValueInfoProto& value : *values)
      if (const OnnxFact* const fact = find(value.name()); fact && fact->elementType != 0) writeType(value, *fact);
  for (const ::onnx::NodeProto& node : m_graph.node())
    for (const std::string& output : node.output())
      if (const OnnxFact* const fact = find(output); fact && fact->elementType != 0) {
        ::onnx::ValueInfoProto& value = *m_graph.add_value_info();
        value.set_name(output);
        writeType(value, *fact);
      }
}

/// Outputs of the model remain outputs of nodes.
void OnnxPreparation::writeConstants() {
  std::set<std::string, std::less<>> outputs;
  for (const auto& output : m_graph.output()) outputs.insert(output.name());
  auto& nodes = *m_graph.mutable_node();
  const auto isFolded = [&](const ::onnx::NodeProto& node) {
    if (node.op_type() == "Constant" || node.output_size() != 1 || outputs.contains(node.output(0))) return false;
    const OnnxFact* const fact = find(node.output(0));
    if (!fact || !fact->values || !fact->shape || !areNumbers(*fact->values) || !areNumbers(*fact->shape)) return false;
    ::onnx::TensorProto tensor;
    if (!writeElements(tensor, *fact)) return false;
    tensor.set_name(node.output(0));
    *m_graph.add_initializer() = std::move(tensor);
    return true;
  };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), isFolded), nodes.end());
}

}  // namespace fuseline
