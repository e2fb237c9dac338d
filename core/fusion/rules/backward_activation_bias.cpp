// An activation's gradient and the bias gradient before it, in one pass.
// Source: TransformerEngine's backward_activation_bias.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"
#include "core/quant/apply_recipe.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// The op before the bias, which the rule only looks at; nullptr: a pipeline input.
const Node* before(const Match& match) {
  const NodeId producer = match.graph.value(match.node(0).inputs.front()).producer;
  return producer < 0 ? nullptr : &match.graph.node(producer);
}

/// By its recipe, whether its sizes fit or not: TransformerEngine asks for a quantizer only.
bool isMeantToQuantizeGradient(const Match& match, const Node& reader) {
  const std::optional<Recipe>& recipe = match.target.recipe;
  if (!recipe || !reader.operation->isQuantizable || reader.operation->isView) return false;
  const auto isAt = [&](const std::string& place) { return reader.isAt(place); };
  return std::ranges::any_of(std::array{GemmRole::Dgrad, GemmRole::Wgrad}, [&](GemmRole gemm) {
    return recipe->quantizerFor({TensorType::GradOutput, gemm}, isAt).has_value();
  });
}

Verdict readsQuantizedGradient(const Match& match) {
  const std::string& bias = match.node(0).id;
  const Node* reader = before(match);
  if (!reader) return Verdict::no(fmt::format("No op is upstream of {}, so its gradient is not quantized.", bias));
  const Value& value = match.graph.value(match.node(0).inputs.front());
  if (value.uses.size() > 1 || value.isOutput || reader->sequential != match.node(0).sequential)
    return Verdict::no(
        fmt::format("{} has other consumers or is in another te.ops.Sequential than {}.", value.name, bias));
  if (quantizersOf(*reader, TensorType::GradOutput).any() || isMeantToQuantizeGradient(match, *reader))
    return Verdict::yes();
  return Verdict::no(
      fmt::format("{} ({}), upstream of {}, does not quantize its output gradient. TransformerEngine fuses these ops "
                  "only under a recipe that quantizes gradients.",
                  reader->id, reader->operation->name, bias));
}

}  // namespace

FusionRule backward_activation_bias() {
  return {
      .name = "BackwardActivationBias",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Te,
      .summary =
          "One pass computes the activation's gradient and the bias gradient (its column sums), under a recipe that "
          "quantizes gradients, even if the sizes of the upstream layer do not fit it.",
      .chain = {{.role = "bias", .operations = {"Bias"}}, {.role = "act", .operations = {"GELU", "ReLU"}}},
      .conditions = {{.sentence = "The op upstream of the bias quantizes its output gradient.",
                      .holds = readsQuantizedGradient},
                     isNotExactGelu("act")},
      .becomes = "elementwise",
  };
}

}  // namespace fuseline::rules
