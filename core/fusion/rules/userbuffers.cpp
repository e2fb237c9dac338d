// A tensor-parallel linear with communication that overlaps with its GEMMs.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/userbuffers.h"

#include "core/fusion/rules/conditions.h"
#include "core/fusion/rules/target_conditions.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

constexpr const char* kName = "userbuffers_comm_name";
constexpr const char* kMode = "tensor_parallel_mode";
constexpr const char* kSequenceParallel = "sequence_parallel";

bool namesUserbuffers(const Node& linear) { return linear.attributes.has(kName); }
bool isNotRowParallel(const Node& linear) { return linear.attributes.text(kMode) != "row"; }
bool isNotParallel(const Node& linear) { return linear.attributes.text(kMode) == "none"; }

/// A bias after a row-parallel linear, and a collective after a parallel one, stay outside.
std::vector<ChainStep> chain() {
  return {{.role = "linear",
           .operations = {"BasicLinear"},
           .accepts = namesUserbuffers,
           .acceptsText = fmt::format("BasicLinear with {}", kName)},
          {.role = "bias", .operations = {"Bias"}, .repeat = Repeat::Optional, .behind = isNotRowParallel},
          {.role = "scatter", .operations = {"ReduceScatter"}, .repeat = Repeat::Optional, .behind = isNotParallel}};
}

/// In the graph of one rank: what a column-parallel linear does with its input; nullptr: nothing.
const CommunicationPasses* inputCommunication(const Match& match) {
  const NodeId producer = match.graph.value(match.node(0).inputs.front()).producer;
  if (producer < 0 || match.graph.node(producer).path != match.node(0).path) return nullptr;
  const auto& passes = match.graph.node(producer).operation->communication;
  return passes ? &*passes : nullptr;
}

/// The only consumer of the match's result; nullptr: several, or none.
const Node* after(const Match& match) {
  const Value& value = match.graph.value(match.node(match.nodes.size() - 1).outputs.front());
  return value.uses.size() == 1 ? &match.graph.node(value.uses.front().node) : nullptr;
}

bool isSummedByAllReduce(const Match& match) {
  const Node* const reader = after(match);
  return reader && reader->operation->name == "AllReduce" && reader->path == match.node(0).path;
}

Verdict communicates(const Match& match) {
  const Node& linear = match.node(0);
  if (match.role("scatter") || !isNotParallel(linear) || inputCommunication(match)) return Verdict::yes();
  if (isSummedByAllReduce(match))
    return Verdict::no(
        fmt::format("{} (AllReduce) sums the result of {} over the ranks, but Userbuffers overlap only a "
                    "ReduceScatter. Enable sequence_parallel to use one.",
                    after(match)->id, linear.id));
  return Verdict::no(fmt::format(
      "{} has {} none and no ReduceScatter follows it, so there is no communication to overlap.", linear.id, kMode));
}

/// A composite that is row-parallel has an AllReduce in place of a ReduceScatter.
std::vector<Repair> communicating(const Match& match) {
  if (isSummedByAllReduce(match)) return {setAttribute(match.node(0), kSequenceParallel, true)};
  return {setAttribute(match.node(0), kMode, "column")};
}

Verdict isSequenceParallel(const Match& match) {
  const Node& linear = match.node(0);
  const CommunicationPasses* const input = inputCommunication(match);
  const bool isGathered = input && input->forward;
  if (match.role("scatter") || isGathered || linear.attributes.boolean(kSequenceParallel)) return Verdict::yes();
  return Verdict::no(
      fmt::format("{} is {}-parallel with {} off, which TransformerEngine's Userbuffers refuse with an error.",
                  linear.id, input ? "column" : linear.attributes.text(kMode), kSequenceParallel));
}

std::vector<Repair> sequenceParallel(const Match& match) {
  return {setAttribute(match.node(0), kSequenceParallel, true)};
}

std::vector<Condition> communicationConditions() {
  return {severalRanks("overlap"),
          recipeFieldIs("backward_override", "none", "Userbuffers support no backward override"),
          {.sentence = "The linear is row- or column-parallel, or a ReduceScatter follows it.",
           .holds = communicates,
           .repairs = communicating},
          {.sentence = "The first dimension is also split: sequence_parallel, or a ReduceScatter.",
           .holds = isSequenceParallel,
           .repairs = sequenceParallel},
          recipeIsNoneOrOneOf({"Float8CurrentScaling", "DelayedScaling", "MXFP8BlockScaling"})};
}

}  // namespace

FusionRule userbuffersLinear(FusionRule rule) {
  rule.origin = RuleOrigin::Te;
  rule.summary +=
      " TransformerEngine checks the recipe and sequence parallelism at run time and raises if they do not fit. It "
      "checks backward_override in its forward fusion only. In Fuseline, all three are conditions of both passes.";
  rule.chain = chain();
  rule.conditions = communicationConditions();
  rule.becomes = "userbuffers_linear";
  // TransformerEngine runs on nothing older.
  rule.hardware = HardwareNeed{.minimum = {8, 0}};
  // dy for the GEMMs, but not for the sum that is the bias's gradient.
  rule.quantizesInside = rule.pass == FusionPass::Backward;
  rule.askedBy = kName;
  return rule;
}

}  // namespace fuseline::rules
