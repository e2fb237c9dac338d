// Conditions that several rules share.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

#include "core/graph/in_place_hazards.h"
#include "core/graph/input_rounding.h"
#include "core/ops/shared_attributes.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// Sums of gradients in place are for TransformerEngine alone, and must be right there.
bool spoilsGradients(const Graph& graph, const Node& node) {
  return node.operation->name == "MakeExtraOutput" && inPlaceHazard(graph, graph.findNode(node.id)).has_value();
}

/// Does every op read the one before it as its main input? TransformerEngine knows no other chains.
bool followsMainInputs(const Match& match) {
  for (std::size_t i = 1; i < match.nodes.size(); ++i)
    if (match.node(i).inputs.front() != match.node(i - 1).outputs.front()) return false;
  return true;
}

bool takes(const FusionRule& rule, const Match& match) {
  const auto steps = chainSteps(rule, match.graph, match.nodes);
  if (!steps || !followsMainInputs(match)) return false;
  const Match own{match.graph, rule, match.nodes, *steps, match.target};
  return std::ranges::none_of(rule.conditions, [&](const Condition& condition) { return !condition.holds(own); });
}

const TensorSpec& outputSpec(const Match& match, const Node& node) {
  return match.graph.value(node.outputs.front()).spec;
}

std::string attributeText(const Node& node, const std::string& attribute) {
  const std::string value = toString(node.attributes.get(attribute));
  return fmt::format("{} has {} {}", node.id, attribute, value.empty() ? "not set" : value);
}

}  // namespace

// Inside a block the edit goes to the block, and so to all of its instances.
Repair setAttribute(const Node& node, const std::string& name, Json value) {
  std::string label = fmt::format("Set {}.{} to {}", node.path, name, value.dump());
  const std::string id = node.path.substr(node.path.rfind('.') + 1);
  Edit edit = SetAttribute{.id = id, .name = name, .value = std::move(value)};
  if (!node.block.empty()) edit = EditInBlock{node.block, {std::move(edit)}};
  return {.label = std::move(label), .edit = std::move(edit)};
}

namespace {

constexpr const char* kCached = "cache_quantized_input";

}  // namespace

Condition keepsItsInput(std::string role) {
  return {
      .sentence = "The activation does not keep its input quantized.",
      .holds =
          [role](const Match& match) {
            const Node& act = *match.role(role);
            if (!act.attributes.has(kCached) || !act.attributes.boolean(kCached)) return Verdict::yes();
            return Verdict::no(
                fmt::format("{0} has {1} enabled: its backward reads the quantized input, which no fused kernel "
                            "supports. Disable {1} to fuse.",
                            act.id, kCached));
          },
      .repairs = [role](const Match& match) { return std::vector{setAttribute(*match.role(role), kCached, false)}; }};
}

Condition readsItsInputAsMade(std::string role) {
  return {.sentence = "The linear's input already has the dtype of its weight.", .holds = [role](const Match& match) {
            const Node& linear = *match.role(role);
            const std::optional<DType> rounded = roundedInput(match.graph, linear);
            if (!rounded) return Verdict::yes();
            return Verdict::no(
                fmt::format("{} rounds its input to {}, the dtype of its weight, and backward needs the rounded "
                            "tensor, which a fused kernel would not write.",
                            linear.id, dtypeName(*rounded)));
          }};
}

Condition isNotExactGelu(std::string role) {
  return {
      .sentence = "GELU is in its tanh form.",
      .holds =
          [role](const Match& match) {
            const Node& act = *match.role(role);
            if (!isExactGelu(act.attributes)) return Verdict::yes();
            return Verdict::no(fmt::format(
                "{} is the exact GELU (approximate none), but this fusion supports only the tanh form.", act.id));
          },
      .repairs =
          [role](const Match& match) { return std::vector{setAttribute(*match.role(role), "approximate", "tanh")}; }};
}

Condition linearModeIsNot(std::string role, std::string mode) {
  return {.sentence = fmt::format("The linear is not {}-parallel.", mode),
          .holds =
              [role, mode](const Match& match) {
                const Node& linear = *match.role(role);
                if (linear.attributes.text("tensor_parallel_mode") != mode) return Verdict::yes();
                return Verdict::no(
                    fmt::format("{} is {}-parallel, so its result must be communicated directly after the GEMM, before "
                                "another op can use it.",
                                linear.id, mode));
              },
          .repairs =
              [role](const Match& match) {
                return std::vector{setAttribute(*match.role(role), "tensor_parallel_mode", "none")};
              }};
}

Condition inPlaceIs(std::string role, bool expected) {
  return {.sentence = expected ? "The op works in place." : "The op does not work in place.",
          .holds =
              [role, expected](const Match& match) {
                const Node& node = *match.role(role);
                if (node.attributes.boolean("in_place") == expected) return Verdict::yes();
                return Verdict::no(fmt::format("{} has in_place {}, but this fusion needs it {}.", node.id,
                                               expected ? "off" : "on", expected ? "on" : "off"));
              },
          .repairs =
              [role, expected](const Match& match) {
                const Node& node = *match.role(role);
                if (expected && spoilsGradients(match.graph, node)) return std::vector<Repair>();
                return std::vector{setAttribute(node, "in_place", expected)};
              }};
}

Condition attributeIs(std::string role, std::string attribute, std::int64_t value) {
  return {
      .sentence = fmt::format("{} is {}.", attribute, value),
      .holds =
          [role, attribute, value](const Match& match) {
            const Node& node = *match.role(role);
            if (node.attributes.get(attribute) == AttributeValue(value)) return Verdict::yes();
            return Verdict::no(fmt::format("{}, but this fusion needs {}.", attributeText(node, attribute), value));
          },
      .repairs = [role, attribute, value](
                     const Match& match) { return std::vector{setAttribute(*match.role(role), attribute, value)}; }};
}

Condition weightIs16Bit(std::string role) {
  return {
      .sentence = "The weight is f16 or bf16.",
      .holds =
          [role](const Match& match) {
            const Node& node = *match.role(role);
            const DType dtype = node.parameters.front().dtype;
            if (dtype != DType::F32) return Verdict::yes();
            return Verdict::no(fmt::format(
                "{} has an f32 weight, but TransformerEngine fuses the bias only into GEMMs with 16-bit weights.",
                node.id));
          },
      .repairs = [role](const Match& match) { return std::vector{setAttribute(*match.role(role), "dtype", "bf16")}; }};
}

Condition isNotTakenBy(FusionRule other) {
  std::string sentence = fmt::format("{} does not apply to the same ops.", other.name);
  return {
      .sentence = std::move(sentence), .holds = [other = std::move(other)](const Match& match) {
        if (!takes(other, match)) return Verdict::yes();
        return Verdict::no(fmt::format("The same ops match {}, which TransformerEngine applies first.", other.name));
      }};
}

Condition sameDType(std::string roleA, std::string roleB) {
  return {.sentence = "Both ops have the same dtype.",
          .holds =
              [roleA, roleB](const Match& match) {
                const Node& a = *match.role(roleA);
                const Node& b = *match.role(roleB);
                const DType dtypeA = outputSpec(match, a).dtype;
                const DType dtypeB = outputSpec(match, b).dtype;
                if (dtypeA == dtypeB) return Verdict::yes();
                return Verdict::no(fmt::format("{} produces {}, but {} produces {}. A single pass needs one dtype.",
                                               a.id, dtypeName(dtypeA), b.id, dtypeName(dtypeB)));
              },
          .repairs =
              [roleA, roleB](const Match& match) {
                const std::string dtype(dtypeName(outputSpec(match, *match.role(roleA)).dtype));
                return std::vector{setAttribute(*match.role(roleB), "dtype", dtype)};
              }};
}

namespace {

/// Why this quantized tensor cannot be written row by row; empty: it can.
std::string wholeTensorText(const QuantizerSpec& quantizer) {
  if (quantizer.isOfRowwise) return "the columnwise tensor is quantized from the dequantized rowwise tensor";
  if (quantizer.transformsColumnwise)
    return "the columnwise tensor is quantized after a Hadamard transform along the columns";
  if (isNvfp4(quantizer.scaling)) return "its block scales depend on the amax of the whole tensor";
  if (quantizer.scaling == Scaling::PerTensor && !quantizer.isDelayed)
    return "its scale depends on the amax of the whole tensor; with DelayedScaling the scale is known in advance";
  return {};
}

}  // namespace

Condition scalesNeedOnlyRows(std::string role, TensorType type) {
  const auto holds = [role, type](const Match& match) {
    const Node& linear = *match.role(role);
    const TensorQuantizers& quantizers = quantizersOf(linear, type);
    for (const std::optional<QuantizerSpec>& quantizer : {quantizers.rowwise, quantizers.columnwise}) {
      const std::string text = quantizer ? wholeTensorText(*quantizer) : "";
      if (!text.empty())
        return Verdict::no(fmt::format("The {} of {} cannot be quantized in the producing kernel: {}.", roleName(type),
                                       linear.id, text));
    }
    return Verdict::yes();
  };
  return {.sentence = "The scales depend only on blocks of rows, or are known in advance.", .holds = holds};
}

Condition productsKnowTheScale(std::string producer, std::string role, TensorType type) {
  const auto holds = [producer, role, type](const Match& match) {
    const Node& maker = *match.role(producer);
    const Node& linear = *match.role(role);
    if (!maker.operation->isQuantizable || quantizersOf(linear, type).isDelayed()) return Verdict::yes();
    return Verdict::no(
        fmt::format("The GEMM of {} can quantize its result for {} only with a scale that is known in advance, as with "
                    "DelayedScaling.",
                    maker.id, linear.id));
  };
  return {.sentence = "A linear op knows the scale of the other one in advance.", .holds = holds};
}

Condition scalesNeedTheAmax(std::string role, TensorType type) {
  const auto holds = [role, type](const Match& match) {
    const Node& linear = *match.role(role);
    if (quantizersOf(linear, type).isDelayed())
      return Verdict::no(fmt::format("The scale of the {} of {} is known in advance, so its amax is not needed first.",
                                     roleName(type), linear.id));
    const std::optional<QuantizerSpec>& columnwise = quantizersOf(linear, type).columnwise;
    if (!columnwise || !columnwise->transformsColumnwise) return Verdict::yes();
    return Verdict::no(
        fmt::format("The columnwise {} of {} is quantized after a Hadamard transform, so it needs its own amax.",
                    roleName(type), linear.id));
  };
  return {.sentence = "The scales depend on the amax of the whole tensor, without a transform.", .holds = holds};
}

Condition hasNoGroups(std::string role) {
  const auto holds = [role](const Match& match) {
    const Node& linear = *match.role(role);
    if (rowGroups(linear) == 0) return Verdict::yes();
    return Verdict::no(fmt::format("{} ({}) quantizes each of its {} groups of rows separately.", linear.id,
                                   linear.operation->name, rowGroups(linear)));
  };
  return {.sentence = "The tensor is quantized as a whole, not by group.", .holds = holds};
}

namespace {

bool isByRows(const Node& node) {
  const BasicOperation& operation = *node.operation;
  return (operation.isElementwise() || operation.category == "Normalization") && !operation.isQuantizable;
}

}  // namespace

ChainStep rowByRow(std::string role) {
  return {.role = std::move(role), .accepts = isByRows, .acceptsText = "an elementwise op or a norm"};
}

ChainStep rowByRowOrLinear(std::string role, std::string mode) {
  return {.role = std::move(role),
          .accepts =
              [mode = std::move(mode)](const Node& node) {
                if (node.operation->name != "BasicLinear") return isByRows(node);
                return node.attributes.text("tensor_parallel_mode") != mode;
              },
          .acceptsText = "an elementwise op, a norm or a linear op"};
}

ChainStep quantizing(std::string role, TensorType type) {
  return {.role = std::move(role),
          .accepts =
              [type](const Node& node) {
                return !node.operation->isView && !isQuantizedAttention(node) && quantizersOf(node, type).any();
              },
          .acceptsText = fmt::format("an op that quantizes its {}", roleName(type))};
}

ChainStep quantizingByAmax(std::string role, TensorType type) {
  const auto hasAmax = [](const std::optional<QuantizerSpec>& quantizer) {
    return quantizer && (quantizer->scaling == Scaling::PerTensor || isNvfp4(quantizer->scaling));
  };
  ChainStep step = quantizing(std::move(role), type);
  step.accepts = [type, hasAmax](const Node& node) {
    const TensorQuantizers& quantizers = quantizersOf(node, type);
    return !node.operation->isView && !isQuantizedAttention(node) &&
           (hasAmax(quantizers.rowwise) || hasAmax(quantizers.columnwise));
  };
  step.acceptsText += " by its amax";
  return step;
}

ChainStep makingHeads(std::string role) {
  return {.role = std::move(role),
          .operations = {"Split", "RotaryPositionEmbedding", "BasicLinear", "Bias"},
          .accepts =
              [](const Node& node) {
                return node.operation->name != "BasicLinear" || node.attributes.text("tensor_parallel_mode") != "row";
              },
          .acceptsText = "a Split, rotary embedding or linear op"};
}

ChainStep quantizedAttention(std::string role) {
  return {.role = std::move(role), .accepts = isQuantizedAttention, .acceptsText = "an FP8 attention"};
}

}  // namespace fuseline::rules
