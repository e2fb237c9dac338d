// Tries rules: is a fusion legal and worth it at one place, and if not, why?
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/chain_walker.h"
#include "core/fusion/saving_model.h"
#include "core/graph/in_place_hazards.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Why a match is not fused.
struct Refusal {
  Outcome outcome = Outcome::ConditionFailed;
  std::string explanation;
  std::vector<Repair> repairs = {};
};

/// Did the user ask for this fusion by name, or by an attribute of its first op?
bool isAsked(const Graph& graph, const FusionOptions& options, const Attempt& attempt);

class Legality {
 public:
  /// unfusedSaved: what the basic ops keep for backward. hazards: see teCaveat. All outlive it.
  Legality(const Graph& graph, const FusionOptions& options, const SavedSet& unfusedSaved,
           const std::vector<InPlaceHazard>& hazards)
      : m_graph(graph), m_options(options), m_hazards(hazards), m_savings(graph, unfusedSaved) {}

  /// Tries the rule from this op on. Precondition: its first step matches the op.
  Attempt tryFrom(NodeId start, const FusionRule& rule, const EntryList& entries, const Claims& claims,
                  std::size_t mostOps = kAnyLength) const;
  /// Tries the rule on ops that are a whole run of its chain; steps: the chain step of each.
  Attempt tryOn(const FusionRule& rule, std::vector<NodeId> nodes, std::vector<int> steps,
                const EntryList& entries) const;

 private:
  std::optional<Refusal> refusalOf(const Match& match, const Attempt& attempt, const EntryList& entries) const;
  std::optional<Refusal> refuseSwitchedOff(const Match& match) const;
  std::optional<Refusal> refuseIdle(const Match& match) const;
  bool mayHaveIdleOps(const Match& match) const;
  std::optional<Refusal> refuseKernel(const Match& match) const;
  std::optional<Refusal> refuseSlower(const Attempt& attempt) const;
  std::optional<Refusal> refuseUnasked(const Match& match, const Attempt& attempt) const;
  std::shared_ptr<const MeasuredGain> measuredAt(const Match& match) const;

  const Graph& m_graph;
  const FusionOptions& m_options;
  const std::vector<InPlaceHazard>& m_hazards;
  SavingModel m_savings;
};

}  // namespace fuseline
