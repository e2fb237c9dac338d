// FusionStage: results of each of the fuser's passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <array>
#include <string_view>
#include <vector>

namespace fuseline {

/// In their order. The rules of TransformerEngine's own passes come first; then quantization is fused into the steps
/// that produce the tensors to quantize.
enum class FusionStage { Ops, Joint, Forward, Backward, FusedOperands };
inline constexpr std::array kFusionStages = {FusionStage::Ops, FusionStage::Joint, FusionStage::Forward,
                                             FusionStage::Backward, FusionStage::FusedOperands};

/// In which a rule is tried.
FusionStage stageOf(const FusionRule& rule);

/// The report after this stage: ops that later rules fuse are still basic ops. Attempts are those of all stages.
FusionReport reportAfter(const FusionReport& report, FusionStage stage);

/// The fusions of this stage's rules, in the order of the report.
std::vector<const Attempt*> fusedIn(const FusionReport& report, FusionStage stage);

}  // namespace fuseline
