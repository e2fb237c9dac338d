// FusionStage: what each of the fuser's passes left behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <array>
#include <string_view>
#include <vector>

namespace fuseline {

/// In their order. The rules of TransformerEngine's own passes come first; then quantization is handed to the steps
/// that make what is quantized.
enum class FusionStage { Ops, Joint, Forward, Backward, HandOvers };
inline constexpr std::array kFusionStages = {FusionStage::Ops, FusionStage::Joint, FusionStage::Forward,
                                             FusionStage::Backward, FusionStage::HandOvers};

/// In which a rule is tried.
FusionStage stageOf(const FusionRule& rule);

/// The report as it stood after this stage: what later rules fused is still basic ops. Attempts are those of all
/// stages.
FusionReport reportAfter(const FusionReport& report, FusionStage stage);

/// What the rules of this stage fused, in the order of the report.
std::vector<const Attempt*> fusedIn(const FusionReport& report, FusionStage stage);

}  // namespace fuseline
