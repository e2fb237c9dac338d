// The common parts of the fusions of a norm of each head with a rotary embedding.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/norm_rotary.h"

#include "core/ops/rotary_form.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

Verdict normalizesHeads(const Match& match) {
  const Node& norm = match.node(0);
  const std::int64_t size = norm.parameters.front().numElements();
  const std::int64_t channels = rotaryForm(match.node(1).attributes).dim;
  if (size == channels) return Verdict::yes();
  return Verdict::no(fmt::format("{} normalizes {} elements together, but a head of {} has {} channels.", norm.id, size,
                                 match.node(1).id, channels));
}

Verdict keepsDType(const Match& match) {
  const Node& norm = match.node(0);
  const DType x = match.graph.value(norm.inputs.front()).spec.dtype;
  const DType y = match.graph.value(norm.outputs.front()).spec.dtype;
  if (x == y) return Verdict::yes();
  return Verdict::no(fmt::format("{} reads {} and writes {}, but a single pass needs one dtype. Set its dtype to {}.",
                                 norm.id, dtypeName(x), dtypeName(y), dtypeName(x)));
}

}  // namespace

FusionRule normRotary(FusionPass pass) {
  return {
      .pass = pass,
      .origin = RuleOrigin::Fuseline,
      .summary = pass == FusionPass::Forward
                     ? "One pass normalizes each head and rotates it, so the normalized head is never written."
                     : "One pass rotates the gradient of each head back and computes the norm's gradients from it.",
      .chain = {{.role = "norm", .operations = {"RMSNorm"}},
                {.role = "rotary", .operations = {"RotaryPositionEmbedding"}}},
      .conditions = {{.sentence = "The norm normalizes the channels of one head.", .holds = normalizesHeads},
                     {.sentence = "The norm keeps the dtype of its input.", .holds = keepsDType}},
      .becomes = "norm_rotary",
  };
}

}  // namespace fuseline::rules
