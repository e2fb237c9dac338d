// Modules of torch.nn where there are some, those of resources/torch/modules.py, else classes of one op.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_member.h"

#include "core/export/te/te_model_ends.h"
#include "core/export/te/te_operation.h"
#include "core/export/te/torch_formula.h"
#include "core/export/torch/torch_experts.h"
#include "core/ops/attention_form.h"
#include "core/ops/rotary_form.h"
#include "core/tensor/tensor_spec.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

Error refused(const Node& node, const char* reason) {
  return Error{fmt::format("{}: {} cannot be written in PyTorch: {}. Use --to te or --to onnx.", node.id,
                           node.operation->name, reason)};
}

std::string dtypeOf(const Node& node) { return torchType(node.parameters.front().dtype); }

TorchMember norm(const Node& node) {
  const std::vector<std::int64_t>& shape = node.attributes.integers("normalized_shape");
  TorchMember member{
      .constructor = {node.operation->name,
                      {fmt::format("({},)", fmt::join(shape, ", ")), pythonNumber(node.attributes.real("eps")),
                       pythonBool(node.attributes.boolean("zero_centered_gamma")), "device", dtypeOf(node)}}};
  member.parameters = {"weight"};
  if (node.operation->name == "LayerNorm") member.parameters.emplace_back("bias");
  return member;
}

/// The leading extents stay those of x, so that a batch of another size runs.
TorchMember reshape(const Graph& graph, const Node& node) {
  const Shape& from = graph.value(node.inputs[0]).spec.shape;
  const Shape& to = graph.value(node.outputs[0]).spec.shape;
  std::size_t kept = 0;
  while (kept < from.size() && kept < to.size() && from[kept] == to[kept]) ++kept;
  std::vector<std::string> extents;
  for (std::size_t axis = kept; axis < to.size(); ++axis) extents.push_back(fmt::format("{}", to[axis]));
  const std::string rest = fmt::format("{}{}", extents.empty() ? "" : ", ", fmt::join(extents, ", "));
  TorchMember member;
  member.expression = kept == 0 ? fmt::format("{{}}.reshape({})", fmt::join(extents, ", "))
                                : fmt::format("{{0}}.reshape(*{{0}}.shape[:{}]{})", kept, rest);
  return member;
}

TorchMember attention(const Node& node) {
  const AttentionForm form = attentionForm(node.attributes);
  TorchMember member{
      .constructor = {"DotProductAttention",
                      {fmt::format("{}", form.heads), fmt::format("{}", form.groups), pythonNumber(form.scale)}},
      .numUnnamed = 3};
  std::vector<std::string>& arguments = member.constructor.arguments;
  const auto add = [&](const char* name, const char* attribute) {
    arguments.push_back(fmt::format("{}={}", name, pythonText(node.attributes.text(attribute))));
  };
  add("layout", "qkv_format");
  if (form.left >= 0 || form.right >= 0) arguments.push_back(fmt::format("window=({}, {})", form.left, form.right));
  if (form.isBottomRight) arguments.emplace_back("is_bottom_right=True");
  if (form.softcap > 0.0) arguments.push_back("softcap=" + pythonNumber(form.softcap));
  if (form.bias != AttentionBias::None) add("bias", "core_attention_bias_type");
  if (form.hasSink()) add("softmax_type", "softmax_type");
  if (form.dropout > 0.0) arguments.push_back("dropout=" + pythonNumber(form.dropout));
  if (node.parameters.empty()) return member;
  arguments.emplace_back("device=device");
  member.parameters = {"softmax_offset"};
  return member;
}

Result<TorchMember> rotary(const Graph& graph, const Node& node) {
  const RotaryForm form = rotaryForm(node.attributes);
  const Result<TokenLayout> layout = rotaryLayout(form, graph.value(node.inputs[0]).spec.shape);
  if (!layout) return layout.error();
  std::vector<std::string> numbers;
  for (const double frequency : rotaryFrequencies(node.attributes, rotaryLength(form, *layout)))
    numbers.push_back(pythonNumber(frequency));
  return TorchMember{
      .constructor = {"RotaryPositionEmbedding",
                      {fmt::format("{}", form.dim), fmt::format("[{}]", fmt::join(numbers, ", ")),
                       pythonText(node.attributes.text("tensor_format")), pythonBool(form.isInterleaved),
                       fmt::format("{}", form.offset), pythonNumber(rotaryAttentionFactor(node.attributes)), "device"}},
      .numUnnamed = 1};
}

/// The class without its name and the op's id, so that ops that compute the same share it.
TorchClass classOf(const Node& node, const std::string& written) {
  std::string text = written.substr(written.find('('));
  const std::string docstring = "\"\"\"" + docText(node.id) + ": ";
  if (const std::size_t at = text.find(docstring); at != std::string::npos)
    text.replace(at, docstring.size(), "\"\"\"");
  return {.stem = node.operation->name, .text = std::move(text)};
}

TorchMember memberOf(TorchClass ofClass, std::vector<std::string> parameters) {
  return {
      .constructor = {ofClass.stem, {"device"}}, .ofClass = std::move(ofClass), .parameters = std::move(parameters)};
}

TorchMember expressed(std::string expression) {
  TorchMember member;
  member.expression = std::move(expression);
  return member;
}

TorchMember experts(const Graph& graph, const Node& node) {
  TorchMember member{.constructor = torchExperts(graph, node)};
  for (const ParameterSpec& parameter : node.operation->parameters) member.parameters.push_back(parameter.name);
  return member;
}

bool isPlainSum(const Graph& graph, const Node& node) {
  const DType dtype = graph.value(node.outputs[0]).spec.dtype;
  return std::ranges::all_of(node.inputs, [&](ValueId input) { return graph.value(input).spec.dtype == dtype; });
}

}  // namespace

TorchMember torchLinear(const Node& linear, bool hasBias) {
  const TensorSpec& weight = linear.parameters.front();
  TorchMember member{.constructor = {"torch.nn.Linear",
                                     {fmt::format("{}", weight.shape[1]), fmt::format("{}", weight.shape[0]),
                                      "bias=" + pythonBool(hasBias), "device=device", "dtype=" + dtypeOf(linear)}}};
  member.parameters = {"weight"};
  return member;
}

Result<TorchMember> torchMember(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string& name = node.operation->name;
  if (name == "BasicLinear") return torchLinear(node, false);
  if (name == "RMSNorm" || name == "LayerNorm") return norm(node);
  if (name == "L2Normalization") return TorchMember{.constructor = {name, {pythonNumber(node.attributes.real("eps"))}}};
  if (name == "DotProductAttention") return attention(node);
  if (name == "RotaryPositionEmbedding") return rotary(graph, node);
  if (name == "Reshape") return reshape(graph, node);
  if (name == "MakeExtraOutput") return expressed("{0}, {0}");
  if (name == "Identity" || name == "Quantize") return expressed("{}");
  if (name == "AddExtraInput" && isPlainSum(graph, node)) return expressed("{} + {}");
  if (name == "Split" && node.outputs.size() == 1) return expressed("{}");
  if (name == "Split")
    return expressed(
        fmt::format("torch.split({{}}, [{}], dim=-1)", fmt::join(node.attributes.integers("sizes"), ", ")));
  if (name == "Concat") {
    const std::vector<std::string> places(node.inputs.size(), "{}");
    return expressed(fmt::format("torch.cat([{}], dim=-1)", fmt::join(places, ", ")));
  }
  if (name == "Expand") {
    const std::int64_t count = node.attributes.integer("count");
    return expressed(fmt::format("{{0}}.unsqueeze(-2).expand(*{{0}}.shape[:-1], {}, {{0}}.shape[-1])", count));
  }
  if (name == "Dropout")
    return TorchMember{.constructor = {"torch.nn.Dropout", {pythonNumber(node.attributes.real("p"))}}};
  if (isRouting(node) || name == "GroupedLinear") return experts(graph, node);
  if (isModelEnd(node)) return memberOf(classOf(node, modelEndModule(node, name)), torchParameterNames(node));
  if (node.operation->category == "Communication")
    return Error{
        fmt::format("{}: {} communicates between ranks, which the PyTorch script cannot. Use --to te.", node.id, name)};
  if (!node.operation->isElementwise()) return refused(node, "it is not supported there yet");
  const Result<std::string> written = torchModule(graph, id, name);
  if (!written) return written.error();
  return memberOf(classOf(node, *written), torchParameterNames(node));
}

}  // namespace fuseline
