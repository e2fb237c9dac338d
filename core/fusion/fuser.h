// OperationFuser: applies the rule set to a graph and records why each rule did or did not fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/gain.h"
#include "core/fusion/rule.h"
#include "core/graph/graph.h"
#include "core/graph/phase.h"
#include "core/quant/recipe.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Quantized tensors that a kernel should write from its result; without quantizers it should find the result's amax.
struct CopiesQuery {
  const TensorQuantizers& quantizers;
  const TensorSpec& spec;  // of the result

  bool isAmaxOnly() const { return !quantizers.any(); }
};

/// A question to a device: is there a kernel with this name for these ops? Keeps fusion free of backends.
struct KernelQuery {
  const Graph& graph;
  std::string_view kernel;
  Phase phase = Phase::Forward;
  std::span<const NodeId> members;
  /// Set: the kernel must also quantize its result in this way, or find its amax.
  const CopiesQuery* copies = nullptr;
};

struct Plan;
struct Step;

/// The capabilities of a device, and the costs of its kernels. Empty: it has every kernel, at the lowest cost.
struct Capabilities : std::function<Verdict(const KernelQuery&)> {
  using function::function;
  /// Bytes that the kernel for a step moves more than once, and its launches beyond the first. Empty: none.
  std::function<Saving(const Plan&, const Step&)> extraCost = {};
};

/// One entry of the forward or backward list: a basic op (rule is null) or a run of ops that execute as one.
struct FusedOperation {
  const FusionRule* rule = nullptr;
  std::vector<NodeId> nodes;  // forward order
  std::int64_t ranks = 1;     // that it is planned for
  std::string caveat = {};    // of the attempt that produced it

  bool isFused() const { return rule != nullptr; }
  /// The rule's name, or the op's own.
  std::string name(const Graph& graph) const;
  /// The kernel that runs it.
  std::string kernelName(const Graph& graph) const;
  /// A remark about its ops on one rank, such as "one rank: nothing to measure"; usually empty.
  std::string note(const Graph& graph) const;
};

/// Fused quantization: the entry that produces a tensor also writes the quantized tensors that a linear op reads, or
/// finds its amax.
struct FusedOperand {
  NodeId reader = -1;  // the linear op
  TensorType type = TensorType::Input;
  bool isAmaxOnly = false;
  auto operator<=>(const FusedOperand&) const = default;
};

enum class Outcome {
  Fused,
  BrokenChain,
  OutsideUse,
  ConditionFailed,
  TakenByAnother,
  NoKernel,
  SwitchedOff,
  OnRequest,  // legal here, but it has a price and was not requested
  MeasuredSlower,
};
std::string_view outcomeName(Outcome outcome);

/// Predicts the saving of a legal fusion. Keeps fusion free of plans.
using SavingPredictor = std::function<Saving(const Match&)>;

/// One rule tried at one place.
struct Attempt {
  const FusionRule* rule = nullptr;
  std::vector<NodeId> nodes;     // the matched ops, from the first one on
  std::size_t stepsMatched = 0;  // of rule->chain
  Outcome outcome = Outcome::BrokenChain;
  std::string explanation;  // a sentence with actual values
  std::string caveat = {};  // TransformerEngine's further requirements, or why its exported module cannot have it
  std::vector<Repair> repairs;
  std::optional<Saving> saving;  // for full matches: the predicted saving
  std::shared_ptr<const MeasuredGain> measured;
};

/// Is the actual or predicted gain of `a` larger? Attempts without a predicted saving rank last.
bool gainsMore(const Attempt& a, const Attempt& b, const DeviceModel& device);

struct FusionOptions {
  RuleBook book = RuleBook::All;
  RuleSwitches switches;
  Capabilities capabilities;           // empty: every kernel exists
  const RuleCatalog* rules = nullptr;  // nullptr: builtinRules()
  FusionTarget target;
  /// Decides between overlapping fusions, unless its `decides` is off. With RuleBook::Te the order of the rules
  /// decides.
  GainModel gains;
  /// Empty: by the traffic of the ops alone.
  SavingPredictor predictor = {};
};

struct FusionReport {
  /// In execution order. Joint fusions are in both lists.
  std::vector<FusedOperation> forward;
  /// In forward order; executed back to front. Only ops that take part in backward.
  std::vector<FusedOperation> backward;
  std::vector<FusedOperand> fusedOperands;
  /// First the applied fusions, in the rule set's order; then misses, the one with the largest gain first.
  std::vector<Attempt> attempts;
  RuleBook book = RuleBook::All;
  DeviceModel device;  // basis of the predictions
};

/// Orders attempts as FusionReport says: after savings have changed.
void sortAttempts(FusionReport& report, const RuleCatalog& rules);

/// The attempt that produced this entry of the report; nullptr for a basic op.
const Attempt* attemptBehind(const FusionReport& report, const FusedOperation& entry);

/// Errors: a switch that names no rule (with the nearest one).
Result<FusionReport> fuse(const Graph& graph, const FusionOptions& options = {});

/// The entry that names the rule, everywhere or at one of these ops; empty if there is none.
std::string switchFor(const Graph& graph, const FusionRule& rule, std::span<const NodeId> nodes,
                      const std::vector<std::string>& entries);

/// "ForwardLinearEpilogue@fc1.linear": an attempt as the file and the command line name it, by the op it begins with.
std::string placeEntry(const Graph& graph, const Attempt& attempt);

/// The same for a fusion that is possible, but left to the user: the text with which RuleSwitches::with requests it.
/// Empty for any other.
std::string requestFor(const Graph& graph, const Attempt& attempt);
/// The explanation for a terminal: with the option that requests the fusion, if there is one.
std::string shellExplanation(const Graph& graph, const Attempt& attempt);

/// Why "RULE@OP" switches nothing in this graph: the pipeline has no such op.
Verdict hasItsOp(const Graph& graph, const std::string& entry);

/// Every op for itself: the baseline that fused plans are measured against.
FusionReport unfused(const Graph& graph);

/// Do both lists expand to exactly the graph's ops, each once, in an order that respects the wires?
Verdict verifyExpansion(const Graph& graph, const FusionReport& report);

/// One line an entry: "[fc1 + act]  ForwardLinearEpilogue (forward, fuseline)".
std::string toText(const Graph& graph, const std::vector<FusedOperation>& list);

/// The "forward" and "backward" lists as a tree.
std::string planTree(const Graph& graph, const FusionReport& report);
/// The same followed by the attempts; as JSON; as Graphviz DOT.
std::string toTree(const Graph& graph, const FusionReport& report);
Json toJson(const Graph& graph, const FusionReport& report);
/// The part of it that runs, "forward", "backward" and "fusedQuantizations", without the attempts.
Json planJson(const Graph& graph, const FusionReport& report);
std::string toDot(const Graph& graph, const FusionReport& report);

}  // namespace fuseline
