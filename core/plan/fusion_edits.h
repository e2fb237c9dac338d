// Edits of the document's fusion section: rules, and fusions at single places, are switched off and on. Pure functions
// from a document, and where a place is meant its graph, to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/analysis.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Switches a rule off or on everywhere, in the document's fusion section: "without" names the disabled rules, "with"
/// the rules that are enabled although they have a price.
Edit setRuleEnabled(const PipelineDocument& document, const FusionRule& rule, bool isEnabled);
bool isRuleEnabled(const PipelineDocument& document, const FusionRule& rule);

/// Takes one entry out of the document's fusion[key], "with" or "without". Precondition: fusion is an object.
Edit removeRuleSwitch(const PipelineDocument& document, const std::string& key, const Json& entry);

/// Switches the fusions of these attempts off at their places; other places of their rules stay as they are.
Edit switchOffHere(const PipelineDocument& document, const Graph& graph, const std::vector<const Attempt*>& attempts);
/// Takes that back.
Edit switchOnHere(const PipelineDocument& document, const Graph& graph, const std::vector<const Attempt*>& attempts);
/// Is the attempt's fusion off at this place only? Then switchOnHere() helps.
bool isOffHere(const PipelineDocument& document, const Graph& graph, const Attempt& attempt);
/// Requests a fusion whose ops another fusion has taken, or that has a price; conflicting fusions are switched off or
/// no longer requested. Nothing if a request would not help.
std::optional<Edit> useHere(const PipelineDocument& document, const Analysis& analysis, const Attempt& attempt);
/// The same of several attempts of one rule.
std::optional<Edit> useHere(const PipelineDocument& document, const Analysis& analysis,
                            const std::vector<const Attempt*>& attempts);

}  // namespace fuseline
