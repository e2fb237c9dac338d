// Attributes have the names of TransformerEngine's arguments; the code below handles the exceptions.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_operation.h"

#include "core/ops/parameters.h"
#include "core/quant/te_requirements.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string literal(const AttributeValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return pythonBool(*flag);
  if (const auto* real = std::get_if<double>(&value)) return pythonNumber(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return pythonText(*text);
  return toString(value);
}

/// Attributes that become something else than an argument of their name.
bool isSpecial(std::string_view name) {
  constexpr std::array<std::string_view, 9> kSpecial = {
      "dtype", "tensor_parallel_mode", "userbuffers_comm_name", "overwrite_main_grad", "cpu_offloading",
      "seed",  "requires_grad",        "distribution",          "zipf_exponent"};
  return std::ranges::find(kSpecial, name) != kSpecial.end() || name.ends_with("_requires_grad");
}

/// Is an attribute with a default here required by TransformerEngine?
bool isRequiredThere(const Node& node, std::string_view attribute) {
  return node.operation->name == "GroupedLinear" && attribute == "num_groups";
}

/// Those that are required, and those that are not as TransformerEngine has them anyway.
std::vector<std::string> plainArguments(const Node& node) {
  std::vector<std::string> arguments;
  for (const AttributeSpec& spec : node.operation->attributes) {
    const AttributeValue& value = node.attributes.get(spec.name);
    if (isSpecial(spec.name) || std::holds_alternative<std::monostate>(value)) continue;
    if (isWrittenApart(node) && spec.name.starts_with("single_grouped")) continue;
    if (spec.isRequired() || isRequiredThere(node, spec.name) || value != spec.defaultValue)
      arguments.push_back(fmt::format("{}={}", spec.name, literal(value)));
  }
  return arguments;
}

bool isOn(const Node& node, std::string_view attribute) {
  return node.attributes.has(attribute) && node.attributes.boolean(attribute);
}

std::string textOf(const Node& node, std::string_view attribute) {
  return node.attributes.has(attribute) ? node.attributes.text(attribute) : "";
}

void appendTensorParallel(const Node& node, std::vector<std::string>& arguments) {
  const std::string mode = textOf(node, "tensor_parallel_mode");
  if (!mode.empty() && mode != "none") arguments.push_back("tensor_parallel_mode=" + pythonText(mode));
  const std::string communicator = textOf(node, "userbuffers_comm_name");
  if (!communicator.empty())
    arguments.push_back(fmt::format("userbuffers_options={{\"comm_name\": {}}}", pythonText(communicator)));
}

void appendParameterType(const Node& node, std::vector<std::string>& arguments) {
  if (node.parameters.empty()) return;
  arguments.emplace_back("device=device");
  arguments.push_back("dtype=" + torchType(node.parameters[0].dtype));
}

/// With {} in place of the op: "{}.weight"; one for each group where these are written apart.
std::vector<std::string> parametersAt(const Node& node, int slot) {
  const std::string name = teParameterName(node, slot);
  if (name.find("{}") == std::string::npos) return {"{}." + name};
  std::vector<std::string> groups;
  for (std::int64_t group = 0; group < node.attributes.integer("num_groups"); ++group)
    groups.push_back("{}." + fmt::format(fmt::runtime(name), group));
  return groups;
}

void appendParameterStatements(const Node& node, TeOperation& operation) {
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
    for (const std::string& parameter : parametersAt(node, slot)) {
      if (!isTrained(*node.operation, node.attributes, slot))
        operation.statements.push_back(parameter + ".requires_grad_(False)");
      const GradientSink sink = node.gradientSink(slot);
      if (sink == GradientSink::Own) continue;
      operation.statements.push_back(
          fmt::format("{0}.main_grad = torch.zeros_like({0}, dtype=torch.float32)", parameter));
      if (sink == GradientSink::Overwrite) operation.statements.push_back(parameter + ".overwrite_main_grad = True");
    }
}

void appendNotes(const Node& node, TeOperation& operation) {
  if (isOn(node, "cpu_offloading"))
    operation.notes.push_back(fmt::format(
        "{}: cpu_offloading is on, but te.ops has no such argument; see te.get_cpu_offload_context().", node.id));
  if (isWrittenApart(node))
    operation.notes.push_back(fmt::format(
        "{}: each group has its own parameter, as TransformerEngine has no kernels in float32 for parameters that "
        "groups share.",
        node.id));
  if (node.delayedNeeds().anyParameter())
    operation.notes.push_back(fmt::format(
        "{}: delay_wgrad_compute is on, so call its backward_dw() after each backward, as the script does.", node.id));
  if (node.operation->name == "Dropout")
    operation.notes.push_back(fmt::format("{}: the mask is PyTorch's random mask, not Fuseline's.", node.id));
}

void appendNode(const Node& node, TeOperation& operation) {
  appendParameterStatements(node, operation);
  appendNotes(node, operation);
}

/// The op of the document that the node is, or is a part of.
const DocumentOp* writtenOp(const PipelineDocument& document, const Node& node) {
  const DocumentBlock* block = node.block.empty() ? &document.pipeline() : document.findBlock(node.block);
  if (!block) return nullptr;
  const auto found = std::ranges::find(block->ops, node.path.substr(node.path.rfind('.') + 1), &DocumentOp::id);
  return found == block->ops.end() ? nullptr : &*found;
}

/// The nodes that a composite became, as far as the graph has them: "fc1.linear", "fc1.bias", "fc1.sum", or "fc1"
/// alone.
std::vector<NodeId> partsOf(const Graph& graph, const Node& node) {
  std::vector<NodeId> parts;
  for (NodeId part = 0; part < static_cast<NodeId>(graph.nodes().size()); ++part)
    if (graph.node(part).path == node.path) parts.push_back(part);
  return parts;
}

bool hasPart(const Graph& graph, const std::vector<NodeId>& parts, std::string_view operation) {
  return std::ranges::any_of(parts, [&](NodeId part) { return graph.node(part).operation->name == operation; });
}

/// A part of a row-parallel Linear has the sizes of one rank, as te.ops.Linear gives them to its parts.
void divideAmongRanks(const PipelineDocument& document, const Graph& graph, const Node& node,
                      std::vector<std::string>& arguments) {
  const DocumentOp* const written = writtenOp(document, node);
  const std::vector<NodeId> parts = partsOf(graph, node);
  if (!written || written->operation != "Linear") return;
  if (!hasPart(graph, parts, "ReduceScatter") && !hasPart(graph, parts, "AllReduce")) return;
  for (std::string& argument : arguments) {
    if (argument.starts_with("in_features=")) argument += fmt::format(" // {}", kTensorParallelSize);
    if (argument.starts_with("size=")) argument += fmt::format(" * {}", kTensorParallelSize);
  }
}

TeOperation basicOperation(const PipelineDocument& document, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<std::string> arguments = plainArguments(node);
  divideAmongRanks(document, graph, node, arguments);
  appendTensorParallel(node, arguments);
  appendParameterType(node, arguments);
  TeOperation operation{
      .name = node.id, .call = {"te.ops." + node.operation->name, std::move(arguments)}, .nodes = {id}};
  appendNode(node, operation);
  return operation;
}

/// The consecutive parts of a Linear that begins here; none if there is no Linear. Linear has no argument for
/// Userbuffers.
std::vector<NodeId> linearAt(const PipelineDocument& document, const Graph& graph, std::span<const NodeId> rest) {
  const Node& node = graph.node(rest[0]);
  const DocumentOp* const written = writtenOp(document, node);
  if (!written || written->operation != "Linear" || !textOf(node, "userbuffers_comm_name").empty()) return {};
  std::vector<NodeId> parts = partsOf(graph, node);
  const bool isWhole = std::ranges::equal(parts, rest.first(std::min(parts.size(), rest.size())));
  return isWhole ? parts : std::vector<NodeId>();
}

void appendRowParallel(const Graph& graph, const std::vector<NodeId>& parts, std::vector<std::string>& arguments) {
  const bool isScattered = hasPart(graph, parts, "ReduceScatter");
  if (!isScattered && !hasPart(graph, parts, "AllReduce")) return;
  arguments.emplace_back("tensor_parallel_mode=\"row\"");
  if (isScattered) arguments.emplace_back("sequence_parallel=True");
}

TeOperation linearOperation(const Graph& graph, const std::vector<NodeId>& parts) {
  const Node& node = graph.node(parts[0]);
  std::vector<std::string> arguments = plainArguments(node);
  if (!hasPart(graph, parts, "Bias")) arguments.emplace_back("bias=False");
  appendTensorParallel(node, arguments);
  appendRowParallel(graph, parts, arguments);
  appendParameterType(node, arguments);
  TeOperation operation{.name = node.path, .call = {"te.ops.Linear", std::move(arguments)}, .nodes = parts};
  for (const NodeId part : parts) appendNode(graph.node(part), operation);
  return operation;
}

}  // namespace

std::string teParameterName(const Node& node, int slot) {
  const std::string& name = node.operation->parameters[static_cast<std::size_t>(slot)].name;
  return isWrittenApart(node) && isOn(node, ("single_grouped_" + name).c_str()) ? name + "{}" : name;
}

std::string torchType(DType dtype) {
  switch (dtype) {
    case DType::F32: return "torch.float32";
    case DType::F16: return "torch.float16";
    case DType::BF16: return "torch.bfloat16";
    case DType::I64: return "torch.int64";
    case DType::E4M3:
    case DType::U8: break;
  }
  return {};
}

std::vector<TeOperation> teOperations(const PipelineDocument& document, const Graph& graph,
                                      const TeSequence& sequence) {
  std::vector<TeOperation> operations;
  std::span<const NodeId> rest = sequence.nodes;
  while (!rest.empty()) {
    const std::vector<NodeId> linear = linearAt(document, graph, rest);
    operations.push_back(linear.empty() ? basicOperation(document, graph, rest[0]) : linearOperation(graph, linear));
    rest = rest.subspan(operations.back().nodes.size());
  }
  return operations;
}

}  // namespace fuseline
