// Two grouped linears with an activation between them, in few kernels per pass.
//
// Matching sizes of the three ops are no condition here: a graph with sizes that do not match has an error.
// TransformerEngine also requires a release of the cuDNN front-end with these kernels, which a plan cannot detect: the
// newest is assumed.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/grouped_mlp.h"

#include "core/fusion/rules/conditions.h"
#include "core/fusion/rules/target_conditions.h"
#include "core/ops/grouped_form.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

constexpr std::int64_t kFeatureAlignment = 64;
constexpr std::int64_t kRowAlignment = 128;

Verdict hasAlignedFeatures(const Match& match) {
  for (const char* role : {"fc1", "fc2"})
    for (const char* attribute : {"in_features", "out_features"}) {
      const Node& linear = *match.role(role);
      const std::int64_t features = linear.attributes.integer(attribute);
      if (features % kFeatureAlignment != 0)
        return Verdict::no(fmt::format("{} has {} {}, but the kernel needs multiples of {}.", linear.id, attribute,
                                       features, kFeatureAlignment));
    }
  return Verdict::yes();
}

Verdict hasAlignedRows(const Match& match) {
  const Node& fc1 = *match.role("fc1");
  const Value& x = match.graph.value(fc1.inputs.front());
  if (x.spec.rows() % kRowAlignment == 0) return Verdict::yes();
  return Verdict::no(fmt::format("{}, the input of {}, has {} rows, but the kernel needs multiples of {}.", x.name,
                                 fc1.id, x.spec.rows(), kRowAlignment));
}

Verdict hasSameGroups(const Match& match) {
  const Node& fc1 = *match.role("fc1");
  const Node& fc2 = *match.role("fc2");
  const std::int64_t groups1 = fc1.attributes.integer("num_groups");
  const std::int64_t groups2 = fc2.attributes.integer("num_groups");
  if (groups1 == groups2) return Verdict::yes();
  return Verdict::no(fmt::format("{} has {} groups, but {} has {}.", fc1.id, groups1, fc2.id, groups2));
}

const Value& splitSizes(const Match& match, const char* role) {
  return match.graph.value(match.role(role)->inputs[GroupedForm::kSplitSizes]);
}

Verdict hasSameSplitSizes(const Match& match) {
  const Value& sizes1 = splitSizes(match, "fc1");
  const Value& sizes2 = splitSizes(match, "fc2");
  if (&sizes1 == &sizes2) return Verdict::yes();
  return Verdict::no(
      fmt::format("{} splits its rows by {}, but {} by {}. The kernel reads one split_sizes tensor for the two layers.",
                  match.role("fc1")->id, sizes1.name, match.role("fc2")->id, sizes2.name));
}

/// Both linears are in the pipeline itself, where values are named after their endpoints.
std::vector<Repair> shareSplitSizes(const Match& match) {
  const Node& fc1 = *match.role("fc1");
  const Node& fc2 = *match.role("fc2");
  if (fc1.path != fc1.owner || fc2.path != fc2.owner) return {};
  const std::string& name = splitSizes(match, "fc1").name;
  const Endpoint to{fc2.id, "split_sizes"};
  return {{.label = fmt::format("Wire {} to {}", name, toString(to)),
           .edit = EditGroup{.label = fmt::format("Wire {} to {}", name, toString(to)),
                             .edits = {RemoveWire{{parseEndpoint(splitSizes(match, "fc2").name), to}},
                                       AddWire{{parseEndpoint(name), to}}}}}};
}

std::vector<Condition> conditions() {
  return {
      recipeIsOneOf({"MXFP8BlockScaling", "NVFP4BlockScaling"}),
      recipeFieldIs("fp8_format", std::string("E4M3"), "the kernels read all gradients as E4M3"),
      recipeFieldIs("disable_rht", false, "grouped quantization to FP4 needs the random Hadamard transform"),
      recipeFieldIs("backward_override", "none", "the kernels support no backward override"),
      {.sentence = "in_features and out_features of both linears are multiples of 64.", .holds = hasAlignedFeatures},
      {.sentence = "Both linears have the same number of groups.", .holds = hasSameGroups},
      {.sentence = "Both linears use the same split_sizes.", .holds = hasSameSplitSizes, .repairs = shareSplitSizes},
      {.sentence = "The number of rows is a multiple of 128.", .holds = hasAlignedRows}};
}

/// TransformerEngine computes the output of ScaledSReLU again in backward, for the gradient of the second weight.
bool isComputedAgain(const Match& match, int member, const SavedTensor& tensor) {
  constexpr int kActivation = 1;
  constexpr int kSecondLinear = 2;
  const Node& activation = match.node(kActivation);
  return member == kSecondLinear && tensor == SavedTensor{OperandKind::Input, 0} &&
         activation.operation->name == "ScaledSReLU" && activation.attributes.boolean("activation_recompute_in_mlp");
}

/// All tensors that the ops keep, except recomputed ones; TransformerEngine keeps them with the first op.
std::vector<MemberTensor> keptByMembers(const Match& match) {
  std::vector<MemberTensor> kept;
  for (std::size_t member = 0; member < match.nodes.size(); ++member)
    for (const SavedTensor& tensor : match.node(member).context.tensors)
      if (!isComputedAgain(match, static_cast<int>(member), tensor)) kept.push_back({static_cast<int>(member), tensor});
  return kept;
}

}  // namespace

FusionRule groupedMlp(FusionRule rule, std::vector<std::string> activations) {
  rule.pass = FusionPass::Joint;
  rule.origin = RuleOrigin::Te;
  rule.chain = {{.role = "fc1", .operations = {"GroupedLinear"}},
                {.role = "act", .operations = std::move(activations)},
                {.role = "fc2", .operations = {"GroupedLinear"}}};
  std::vector<Condition> shared = conditions();
  rule.conditions.insert(rule.conditions.begin(), shared.begin(), shared.end());
  rule.becomes = "grouped_mlp";
  rule.summary =
      "Saves the steps between two grouped GEMMs: the first one applies activation and scale and writes its output "
      "quantized for the second, also in backward. TransformerEngine needs NVTE_CUTEDSL_FUSED_GROUPED_MLP=1 before its "
      "import and a recent cuDNN front-end. If rows, split sizes or backward_override do not fit, TransformerEngine "
      "raises at run time, and Fuseline does not apply the rule. With delay_wgrad_compute the delayed gradient is a "
      "separate step in Fuseline.";
  rule.teVariable = "NVTE_CUTEDSL_FUSED_GROUPED_MLP";
  if (!rule.hardware) rule.hardware = HardwareNeed{.minimum = {10, 0}, .below = ComputeCapability{11, 0}};
  rule.saves = keptByMembers;
  rule.quantizesInside = true;
  return rule;
}

}  // namespace fuseline::rules
