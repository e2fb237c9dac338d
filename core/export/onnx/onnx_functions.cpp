// Each call has a scope: the outer names of the function's tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_functions.h"

#include "core/export/onnx/onnx_reading.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace fuseline {

namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 200'000;

// Fields of onnx.proto that headers older than ONNX 1.16 do not have.
constexpr int kOverloadOfNode = 8;
constexpr int kOverloadOfFunction = 13;
constexpr int kDefaultsOfFunction = 11;  // attribute_proto

/// The values of a field that the library knows.
template <class Message>
std::vector<std::string> knownFields(const Message& message, const google::protobuf::FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return {reflection.GetString(message, &field)};
  std::vector<std::string> found;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i)
    found.push_back(reflection.GetRepeatedMessage(message, &field, i).SerializeAsString());
  return found;
}

/// Strings, and messages as their bytes.
template <class Message>
std::vector<std::string> newerFields(const Message& message, int number) {
  if (const auto* const known = message.GetDescriptor()->FindFieldByNumber(number)) return knownFields(message, *known);
  std::vector<std::string> found;
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    const bool isText = field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
    if (isText && field.number() == number) found.push_back(field.length_delimited());
  }
  return found;
}

template <class Message>
std::string keyOf(const Message& message, const std::string& name, int overloadField) {
  const std::vector<std::string> overloads = newerFields(message, overloadField);
  return fmt::format("{}:{}:{}", message.domain(), name, overloads.empty() ? "" : overloads.front());
}

/// The operators of these domains are known without their functions.
bool isKnownDomain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx" || domain == "com.microsoft";
}

struct Scope {
  std::string prefix;
  std::map<std::string, std::string> names = {};
  std::map<std::string, ::onnx::AttributeProto> attributes = {};

  std::string of(const std::string& name) {
    if (name.empty()) return name;
    return names.try_emplace(name, prefix + name).first->second;
  }
};

class FunctionInlining {
 public:
  explicit FunctionInlining(const ::onnx::ModelProto& model) {
    for (const auto& function : model.functions())
      m_functions.emplace(keyOf(function, function.name(), kOverloadOfFunction), &function);
  }

  void expand(::onnx::GraphProto& graph, int depth = 0) {
    google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    nodes.Swap(graph.mutable_node());
    for (::onnx::NodeProto& node : nodes) addExpanded(std::move(node), graph, depth);
  }

  /// The name of a function that calls itself, directly or through others; empty if there is none.
  std::string recursive() const {
    constexpr std::size_t kMostFunctions = 2000;  // each is followed
    if (m_functions.size() > kMostFunctions) return {};
    for (const auto& [key, function] : m_functions)
      if (callsOf(*function).contains(key)) return function->name();
    return {};
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

  /// Keys of all functions that this one needs.
  std::set<std::string> callsOf(const ::onnx::FunctionProto& function) const {
    std::set<std::string> called;
    for (std::vector<const Nodes*> open = {&function.node()}; !open.empty();) {
      const Nodes& nodes = *open.back();
      open.pop_back();
      for (const ::onnx::NodeProto& node : nodes) {
        for (const auto& attribute : node.attribute())
          if (attribute.has_g()) open.push_back(&attribute.g().node());
        if (isKnownDomain(node.domain())) continue;
        const auto found = m_functions.find(keyOf(node, node.op_type(), kOverloadOfNode));
        if (found != m_functions.end() && called.insert(found->first).second) open.push_back(&found->second->node());
      }
    }
    return called;
  }

  const ::onnx::FunctionProto* functionOf(const ::onnx::NodeProto& node, int depth) const {
    if (isKnownDomain(node.domain()) || depth > kMaxDepth) return nullptr;
    const auto found = m_functions.find(keyOf(node, node.op_type(), kOverloadOfNode));
    const bool isFit = found != m_functions.end() && m_numNodes + found->second->node_size() <= kMaxNodes;
    return isFit ? found->second : nullptr;
  }

  void addExpanded(::onnx::NodeProto node, ::onnx::GraphProto& graph, int depth) {
    if (const ::onnx::FunctionProto* const function = functionOf(node, depth))
      return call(*function, node, graph, depth);
    if (depth <= kMaxDepth)
      for (::onnx::AttributeProto& attribute : *node.mutable_attribute())
        if (attribute.has_g()) expand(*attribute.mutable_g(), depth + 1);
    *graph.add_node() = std::move(node);
  }

  void call(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node, ::onnx::GraphProto& graph,
            int depth) {
    m_numNodes += function.node_size();
    Scope scope = scopeOf(function, node);
    for (::onnx::NodeProto each : function.node()) {
      rename(each, scope);
      addExpanded(std::move(each), graph, depth + 1);
    }
    for (int i = 0; i < function.output_size() && i < node.output_size(); ++i)
      passOn(scope.of(function.output(i)), node.output(i), graph);
  }

  Scope scopeOf(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node) {
    const std::string name = !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
    std::string prefix = name + "/";
    for (int number = 2; !m_prefixes.insert(prefix).second; ++number) prefix = fmt::format("{}_{}/", name, number);
    Scope scope{.prefix = std::move(prefix)};
    for (int i = 0; i < function.input_size(); ++i) scope.names.emplace(function.input(i), inputOf(node, i));
    for (int i = 0; i < function.output_size() && i < node.output_size(); ++i)
      if (!node.output(i).empty()) scope.names.emplace(function.output(i), node.output(i));
    for (const std::string& bytes : newerFields(function, kDefaultsOfFunction))
      if (::onnx::AttributeProto attribute; attribute.ParseFromString(bytes))
        scope.attributes[attribute.name()] = attribute;
    for (const auto& attribute : node.attribute()) scope.attributes[attribute.name()] = attribute;
    return scope;
  }

  /// A function may return one of its inputs.
  static void passOn(const std::string& inner, const std::string& outer, ::onnx::GraphProto& graph) {
    if (inner == outer || outer.empty()) return;
    ::onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.set_name(outer);
    node.add_input(inner);
    node.add_output(outer);
  }

  void rename(::onnx::NodeProto& node, Scope& scope) const {
    node.set_name(scope.prefix + node.name());
    for (std::string& input : *node.mutable_input()) input = scope.of(input);
    for (std::string& output : *node.mutable_output()) output = scope.of(output);
    bind(*node.mutable_attribute(), scope);
  }

  /// A call's attributes replace references to them; a missing attribute falls back to the operator's default.
  void bind(google::protobuf::RepeatedPtrField<::onnx::AttributeProto>& attributes, Scope& scope) const {
    google::protobuf::RepeatedPtrField<::onnx::AttributeProto> bound;
    for (::onnx::AttributeProto& attribute : attributes) {
      const auto given = scope.attributes.find(attribute.ref_attr_name());
      const bool isReference = !attribute.ref_attr_name().empty();
      if (isReference && given == scope.attributes.end()) continue;
      ::onnx::AttributeProto value = isReference ? given->second : attribute;
      value.set_name(attribute.name());
      if (!isReference && value.has_g()) rename(*value.mutable_g(), scope);
      *bound.Add() = std::move(value);
    }
    attributes.Swap(&bound);
  }

  void rename(::onnx::GraphProto& graph, Scope& scope) const {
    for (auto* values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
      for (::onnx::ValueInfoProto& value : *values) value.set_name(scope.of(value.name()));
    for (::onnx::TensorProto& tensor : *graph.mutable_initializer()) tensor.set_name(scope.of(tensor.name()));
    for (::onnx::NodeProto& node : *graph.mutable_node()) rename(node, scope);
  }

  std::map<std::string, const ::onnx::FunctionProto*> m_functions;
  std::set<std::string> m_prefixes;
  int m_numNodes = 0;
};

}  // namespace

std::string recursiveFunction(const ::onnx::ModelProto& model) { return FunctionInlining(model).recursive(); }

void inlineFunctions(::onnx::ModelProto& model) {
  if (model.functions_size() > 0) FunctionInlining(model).expand(*model.mutable_graph());
}

}  // namespace fuseline
