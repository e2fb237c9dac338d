// One function by kind of kernel.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/column_operands.h"

#include "core/ops/attention_form.h"
#include "core/ops/rotary_form.h"
#include "core/quant/attention_quantizers.h"

namespace fuseline {

namespace {

bool isInput(const OperandKey& key) { return key.kind == OperandKind::Input || key.kind == OperandKind::GradInput; }
bool isOutput(const OperandKey& key) { return key.kind == OperandKind::Output || key.kind == OperandKind::GradOutput; }

std::int64_t widthOf(const Graph& graph, const Step& step, const OperandKey& key) {
  const Node& node = graph.node(step.nodes.front());
  const auto slot = static_cast<std::size_t>(key.slot);
  return graph.value(isInput(key) ? node.inputs[slot] : node.outputs[slot]).spec.cols();
}

/// Quantized values, and their replacements, are contiguous.
bool linearTakes(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  const bool mayBe = isInput(key) || (isOutput(key) && step.kernel == "BasicLinear");
  return mayBe && key.slot == 0 && !graph.node(step.nodes.front()).quantizers.any() &&
         width == widthOf(graph, step, key);
}

/// The columns that are normalized together. A norm that quantizes reads its input in tiles.
bool normTakes(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  const Node& norm = graph.node(step.nodes.front());
  return isInput(key) && key.slot == 0 && step.copies.empty() &&
         width == (norm.parameters.empty() ? widthOf(graph, step, key) : norm.parameters.front().numElements());
}

/// All heads of a token, or each by itself.
bool headsTake(std::int64_t heads, std::int64_t channels, std::int64_t width) {
  return width == heads * channels || width == channels;
}

/// Quantized values are contiguous, and so are their sources; gradients may be columns.
bool attentionTakes(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  const Node& attention = graph.node(step.nodes.front());
  if (isQuantizedAttention(attention) && key.kind == OperandKind::Input) return false;
  const AttentionForm form = attentionForm(attention.attributes);
  if (isOutput(key)) return key.slot == 0 && headsTake(form.heads, form.vChannels, width);
  if (!isInput(key)) return false;
  switch (key.slot) {
    case AttentionForm::kQuery: return headsTake(form.heads, form.qkChannels, width);
    case AttentionForm::kKey: return headsTake(form.groups, form.qkChannels, width);
    case AttentionForm::kValue: return headsTake(form.groups, form.vChannels, width);
    default: return false;
  }
}

bool rotaryTakes(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  const bool isRotated = key.slot == 0 && (isInput(key) || isOutput(key));
  const NodeId rotary = step.nodes.back();
  const Result<TokenLayout> layout =
      rotaryLayout(rotaryForm(graph.node(rotary).attributes), graph.inputSpecs(rotary).front().shape);
  if (!isRotated || !layout) return false;
  if (step.kernel == "norm_rotary") return isInput(key) && width == layout->heads * layout->channels;
  return step.copies.empty() && headsTake(layout->heads, layout->channels, width);
}

/// A copy reads and writes its parts by stride, and the repeated rows of Expand.
bool copyTakes(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  const bool isPart = step.kernel == "Concat" ? isInput(key) : isOutput(key);
  return isPart && step.copies.empty() && width == widthOf(graph, step, key);
}

}  // namespace

bool takesColumns(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width) {
  using Takes = bool (*)(const Graph&, const Step&, const OperandKey&, std::int64_t);
  struct KernelColumns {
    std::string_view kernel;
    Takes takes;
  };
  static constexpr KernelColumns kKernels[] = {{"BasicLinear", linearTakes},
                                               {"linear_epilogue", linearTakes},
                                               {"linear_backward_bias", linearTakes},
                                               {"DotProductAttention", attentionTakes},
                                               {"RMSNorm", normTakes},
                                               {"LayerNorm", normTakes},
                                               {"L2Normalization", normTakes},
                                               {"RotaryPositionEmbedding", rotaryTakes},
                                               {"norm_rotary", rotaryTakes},
                                               {"Split", copyTakes},
                                               {"Concat", copyTakes},
                                               {"Expand", copyTakes}};
  if (key.member != 0) return false;
  for (const auto& [kernel, takes] : kKernels)
    if (step.kernel == kernel) return takes(graph, step, key, width);
  return false;
}

}  // namespace fuseline
