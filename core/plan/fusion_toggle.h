// Switches the fusions of a selection: pure, from a document and its analysis to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/fusion_edits.h"

#include <optional>
#include <set>
#include <string>

namespace fuseline {

struct FusionToggle {
  Edit edit;
  std::string hint;  // which ones: "Switched off here: ForwardLinearEpilogue."
};
/// Off, if one that touches the selection is applied; on, if they are only off at their places. `rule` narrows it to
/// that rule; empty: all of them. Nothing: there is no fusion to switch.
std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const std::set<std::string>& selection, const std::string& rule);

}  // namespace fuseline
