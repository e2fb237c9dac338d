// te.DotProductAttention is made with the op's attributes; masks and biases are arguments of its call.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_attention.h"

#include "core/export/te/python_text.h"
#include "core/export/te/te_model_ends.h"
#include "core/export/te/te_operation.h"
#include "core/export/torch/torch_experts.h"
#include "core/ops/attention_form.h"
#include "core/ops/rotary_form.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

struct ModuleText {
  std::string constructor;  // lines of __init__() behind that of its base
  std::vector<std::string> arguments;
  std::string forward;
};

std::string written(const std::string& className, const Node& node, const ModuleText& text) {
  std::string module = fmt::format("class {}(torch.nn.Module):\n    \"\"\"{}: {}\"\"\"\n\n", className,
                                   docText(node.id), docText(node.operation->formula));
  module += "    def __init__(self, device):\n        super().__init__()\n" + text.constructor;
  return module + fmt::format("\n    def forward(self, {}):\n{}", fmt::join(text.arguments, ", "), text.forward);
}

std::string line(const std::string& text) { return "        " + text + "\n"; }

// ---- attention

std::vector<std::string> attentionArguments(const Node& node) {
  const Attributes& given = node.attributes;
  const AttentionForm form = attentionForm(given);
  std::vector<std::string> arguments = {fmt::format("num_attention_heads={}", form.heads)};
  arguments.push_back(form.qkChannels == form.vChannels
                          ? fmt::format("kv_channels={}", form.qkChannels)
                          : fmt::format("kv_channels=({}, {})", form.qkChannels, form.vChannels));
  if (form.groups != form.heads) arguments.push_back(fmt::format("num_gqa_groups={}", form.groups));
  if (form.dropout > 0.0) arguments.push_back("attention_dropout=" + pythonNumber(form.dropout));
  for (const char* const name : {"qkv_format", "attn_mask_type"})
    arguments.push_back(fmt::format("{}={}", name, pythonText(given.text(name))));
  if (given.has("window_size")) {
    const std::vector<std::int64_t>& window = given.integers("window_size");
    arguments.push_back(fmt::format("window_size=({})", fmt::join(window, ", ")));
  }
  if (given.has("bottom_right_diagonal"))
    arguments.push_back("bottom_right_diagonal=" + pythonBool(given.boolean("bottom_right_diagonal")));
  if (form.softcap > 0.0) arguments.push_back("softcap=" + pythonNumber(form.softcap));
  if (given.text("attention_type") != "self")
    arguments.push_back("attention_type=" + pythonText(given.text("attention_type")));
  if (given.has("softmax_scale")) arguments.push_back("softmax_scale=" + pythonNumber(given.real("softmax_scale")));
  if (form.hasSink()) arguments.push_back("softmax_type=" + pythonText(given.text("softmax_type")));
  return arguments;
}

/// [S, B, heads, D] of a tensor that may have its heads merged.
std::string apart(const char* name, QkvFormat format, std::int64_t heads) {
  const int numOuter = format == QkvFormat::Thd ? 1 : 2;
  return line(fmt::format("{0} = {0}.reshape(*{0}.shape[:{1}], {2}, -1)", name, numOuter, heads));
}

ModuleText attentionText(const Node& node) {
  const AttentionForm form = attentionForm(node.attributes);
  ModuleText text;
  text.constructor = statement("self.attention = ", {"te.DotProductAttention", attentionArguments(node)}, "", 8);
  if (form.softmax == SoftmaxType::Learnable)
    text.constructor += line("self.attention = self.attention.to(device)") +
                        line("self.softmax_offset = self.attention.softmax_offset");
  for (const Port& port : node.operation->inputs) text.arguments.push_back(port.name);
  text.forward =
      apart("x", form.format, form.heads) + apart("k", form.format, form.groups) + apart("v", form.format, form.groups);
  std::vector<std::string> call = {"x", "k", "v"};
  if (form.maskSlot >= 0) call.emplace_back("attention_mask=attention_mask != 0");
  if (form.hasBias())
    call.push_back(
        fmt::format("core_attention_bias_type={}", pythonText(node.attributes.text("core_attention_bias_type"))));
  if (form.hasBias()) call.emplace_back("core_attention_bias=core_attention_bias");
  if (form.bias == AttentionBias::Alibi) call.emplace_back("core_attention_bias_type=\"alibi\"");
  if (form.cuSeqlensQSlot >= 0) {
    const int tokens = form.format == QkvFormat::Sbhd ? 0 : 1;
    for (const char* const side : {"q", "kv"}) {
      call.push_back(fmt::format("cu_seqlens_{0}=cu_seqlens_{0}.int()", side));
      const char* const tensor = std::string_view(side) == "q" ? "x" : "k";
      call.push_back(form.format == QkvFormat::Thd
                         ? fmt::format("max_seqlen_{0}=int(cu_seqlens_{0}.diff().max())", side)
                         : fmt::format("max_seqlen_{}={}.shape[{}]", side, tensor, tokens));
    }
  }
  text.forward += statement("return ", {"self.attention", call}, "", 8);
  return text;
}

// ---- rotary embeddings

/// TransformerEngine computes the angles itself.
bool hasPlainAngles(const Node& node, const RotaryForm& form) {
  return node.attributes.text("rope_type") == "default" && form.offset == 0;
}

/// self.angles, or the radians by position, self.inverse.
std::string anglesMember(const Node& node, const RotaryForm& form, std::int64_t length) {
  if (!hasPlainAngles(node, form)) {
    std::vector<std::string> numbers;
    for (const double frequency : rotaryFrequencies(node.attributes, length))
      numbers.push_back(pythonNumber(frequency));
    const std::string list = fmt::format("[{}]", fmt::join(numbers, ", "));
    return line("# te.RotaryPositionEmbedding scales no frequencies; these are radians by position.") +
           statement("self.inverse = ", {"torch.tensor", {list, "device=device"}}, "", 8);
  }
  std::vector<std::string> arguments = {fmt::format("{}", form.dim)};
  if (form.rotated != form.dim)
    arguments.push_back("rotary_percent=" + pythonNumber(node.attributes.real("rotary_percent")));
  arguments.push_back("rotary_base=" + pythonNumber(node.attributes.real("rotary_base")));
  if (form.isInterleaved) arguments.emplace_back("interleaved=True");
  for (const char* const name : {"seq_len_interpolation_factor", "pretrained_max_position_embeddings"})
    if (node.attributes.has(name)) arguments.push_back(fmt::format("{}={}", name, toString(node.attributes.get(name))));
  return statement("self.angles = ", {"te.RotaryPositionEmbedding", arguments}, "", 8) +
         line("self.angles = self.angles.to(device)");
}

/// Lines that set `target` to the angles of `length` positions, [length, 1, 1, R].
std::string angleTable(const Node& node, const RotaryForm& form, const char* target, const std::string& length) {
  if (hasPlainAngles(node, form)) return line(fmt::format("{} = self.angles({})", target, length));
  return line(fmt::format("positions = torch.arange({}, device=self.inverse.device) + {}", length, form.offset)) +
         line("angles = torch.outer(positions.float(), self.inverse)") +
         line(form.isInterleaved ? "angles = angles.repeat_interleave(2, dim=-1)"
                                 : "angles = torch.cat([angles, angles], dim=-1)") +
         line(fmt::format("{} = angles[:, None, None, :]", target));
}

/// Rows of the table for all positions but start_positions.
std::int64_t tableLength(const Graph& graph, const Node& node, const RotaryForm& form) {
  const Result<TokenLayout> layout = rotaryLayout(form, graph.value(node.inputs[0]).spec.shape);
  if (form.maxLength > 0) return form.maxLength - form.offset;
  return layout ? layout->tokens : 0;
}

ModuleText rotaryText(const Graph& graph, const Node& node) {
  const RotaryForm form = rotaryForm(node.attributes);
  const std::int64_t length = tableLength(graph, node, form);
  const double factor = rotaryAttentionFactor(node.attributes);
  const bool isGrowing = form.startPositionsSlot >= 0 && form.maxLength == 0;
  ModuleText text;
  text.constructor = anglesMember(node, form, length + form.offset);
  if (!isGrowing) text.constructor += angleTable(node, form, "self.freqs", fmt::format("{}", length));
  for (const Port& port : node.operation->inputs) text.arguments.push_back(port.name);
  const int numOuter = form.format == QkvFormat::Thd ? 1 : 2;
  text.forward = line(fmt::format("heads = x.reshape(*x.shape[:{}], -1, {})", numOuter, form.dim));
  if (isGrowing)
    text.forward +=
        angleTable(node, form, "freqs",
                   fmt::format("x.shape[{}] + int(start_positions.max())", form.format == QkvFormat::Bshd ? 1 : 0));
  std::vector<std::string> call = {"heads", isGrowing ? "freqs" : "self.freqs",
                                   "tensor_format=" + pythonText(node.attributes.text("tensor_format"))};
  if (form.startPositionsSlot >= 0) call.emplace_back("start_positions=start_positions.int()");
  if (form.isInterleaved) call.emplace_back("interleaved=True");
  call.emplace_back("fused=True");
  if (form.cuSeqlensSlot >= 0) call.emplace_back("cu_seqlens=cu_seqlens.int()");
  text.forward += statement("y = ", {"te.attention.rope.apply_rotary_pos_emb", call}, "", 8);
  if (factor != 1.0) {
    text.forward += line("# Sines and cosines times the attention factor of yarn.");
    text.forward += line(fmt::format("turned = y[..., :{}] * {}", form.rotated, pythonNumber(factor)));
    text.forward += line(fmt::format("y = torch.cat([turned, y[..., {}:]], dim=-1)", form.rotated));
  }
  text.forward += line("return y.reshape(x.shape)");
  return text;
}

// ---- structure

ModuleText splitText(const Node& node) {
  if (node.outputs.size() == 1) return {.constructor = {}, .arguments = {"x"}, .forward = line("return x")};
  return {.constructor = {},
          .arguments = {"x"},
          .forward = line(
              fmt::format("return torch.split(x, [{}], dim=-1)", fmt::join(node.attributes.integers("sizes"), ", ")))};
}

ModuleText concatText(const Node& node) {
  ModuleText text;
  for (const Port& port : node.operation->inputs) text.arguments.push_back(port.name);
  text.forward = line(fmt::format("return torch.cat([{}], dim=-1)", fmt::join(text.arguments, ", ")));
  return text;
}

ModuleText expandText(const Node& node) {
  const std::int64_t count = node.attributes.integer("count");
  return {.arguments = {"x"},
          .forward = line(fmt::format("return x.unsqueeze(-2).expand(*x.shape[:-1], {}, x.shape[-1])", count))};
}

}  // namespace

bool isTeModule(const Node& node) {
  constexpr std::array kNames = {"DotProductAttention", "RotaryPositionEmbedding", "Split", "Concat", "Expand"};
  return isModelEnd(node) || isRouting(node) || std::ranges::find(kNames, node.operation->name) != kNames.end();
}

std::string teModule(const Graph& graph, NodeId id, const std::string& className) {
  const Node& node = graph.node(id);
  const std::string& name = node.operation->name;
  if (isRouting(node)) return routingModule(graph, node, className);
  if (isModelEnd(node)) return modelEndModule(node, className);
  if (name == "DotProductAttention") return written(className, node, attentionText(node));
  if (name == "RotaryPositionEmbedding") return written(className, node, rotaryText(graph, node));
  if (name == "Expand") return written(className, node, expandText(node));
  return written(className, node, name == "Split" ? splitText(node) : concatText(node));
}

}  // namespace fuseline
