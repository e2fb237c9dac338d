// A grouped MLP with a gated activation (TransformerEngine grouped_mlp.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"
#include "core/fusion/rules/grouped_mlp.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

constexpr ComputeCapability kRubin{10, 7};

Verdict hasActivation(const Match& match) {
  const Node& activation = *match.role("act");
  const std::optional<ComputeCapability>& device = match.target.capability;
  const bool isMissing = activation.operation->name == "ScaledSiTUGLU" && device && *device >= kRubin;
  if (!isMissing) return Verdict::yes();
  return Verdict::no(fmt::format("{} is {}, which has no kernel on GPUs of compute capability {} or newer.",
                                 activation.id, activation.operation->name, toString(kRubin)));
}

}  // namespace

FusionRule grouped_mlp_glu() {
  return groupedMlp(
      {
          .name = "GroupedMLP_CuTeGEMMGLU",
          // 32 is the block of MXFP8.
          .conditions = {attributeIs("act", "glu_interleave_size", 32),
                         {.sentence = "The device has a kernel for the activation.", .holds = hasActivation}},
          .hardware = HardwareNeed{.minimum = {10, 0}, .below = ComputeCapability{10, 8}},
      },
      {"ScaledSwiGLU", "ScaledClampedQGeGLU", "ScaledSiTUGLU"});
}

}  // namespace fuseline::rules
