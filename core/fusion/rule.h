// FusionRule: one fusion as data. A chain of ops, conditions as sentences with predicates, and its kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/graph/graph.h"
#include "core/quant/recipe.h"
#include "core/support/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Joint rules replace forward and backward together and come first; the next two act on the remaining ops. Fused
/// quantization comes last: every op stays in its entry, but the entry that produces a tensor also quantizes it for its
/// consumer, or finds its amax.
enum class FusionPass { Joint, Forward, Backward, ForwardQuantization, BackwardQuantization };
/// "joint", "forward" or "backward".
std::string_view passName(FusionPass pass);

/// Te: TransformerEngine's own fusions, decision for decision. Fuseline: additional ones.
enum class RuleOrigin { Te, Fuseline };
std::string_view originName(RuleOrigin origin);

/// Which chapters apply: `--rules te|all`.
enum class RuleBook { Te, All };

enum class Repeat { Once, Optional, OneOrMore, ZeroOrMore };

/// One step of a chain. It accepts an op that is named in `operations`, if there are names, and for which `accepts`
/// returns true, if it is set.
struct ChainStep {
  std::string role;
  std::vector<std::string> operations;
  Repeat repeat = Repeat::Once;
  std::function<bool(const Node&)> accepts;
  /// The name of the accepted ops in messages, if op names do not tell: "an elementwise op".
  std::string acceptsText;
  /// Set: the step exists only if the first op of the chain satisfies this.
  std::function<bool(const Node& first)> behind;
  /// Role of the earlier step whose op this one follows, if that matched one; else, and if empty, it follows the op
  /// before it. Chains with such steps may branch.
  std::string follows = {};

  bool matches(const Node& node) const;
  /// Also checks the first op of the chain.
  bool matches(const Node& node, const Node& first) const;
  bool isOptional() const { return repeat == Repeat::Optional || repeat == Repeat::ZeroOrMore; }
  bool isRepeated() const { return repeat == Repeat::OneOrMore || repeat == Repeat::ZeroOrMore; }
  std::string description() const;
};

struct FusionRule;

/// The target of fusing, in addition to the graph.
struct FusionTarget {
  std::optional<Recipe> recipe;                 // none: high precision
  std::optional<ComputeCapability> capability;  // of the GPU; none: the device is no GPU
  std::int64_t ranks = 1;                       // of the tensor-parallel group
};

/// One rank without a GPU, in high precision.
inline const FusionTarget kPlainTarget;

/// A run of ops that fits a rule's chain, in forward order.
struct Match {
  const Graph& graph;
  const FusionRule& rule;
  std::vector<NodeId> nodes;
  std::vector<int> steps;  // for each node the index of its chain step
  const FusionTarget& target = kPlainTarget;

  /// The first node in this role; nullptr when an optional step is empty.
  const Node* role(std::string_view name) const;
  const Node& node(std::size_t index) const { return graph.node(nodes[index]); }
};

struct Condition {
  std::string sentence;  // "The extra input is added in place."
  std::function<Verdict(const Match&)> holds;
  /// The edits that would satisfy it, if there are any.
  std::function<std::vector<Repair>(const Match&)> repairs;
};

/// The chain step of each node where the nodes, one after the other, are a whole run of the rule's chain.
std::optional<std::vector<int>> chainSteps(const FusionRule& rule, const Graph& graph, std::span<const NodeId> nodes);

/// A tensor of one member of a match.
struct MemberTensor {
  int member = 0;
  SavedTensor tensor;
};

/// A fusion. Contracts (checked for every rule by tests/conformance):
///   forward:  same outputs within the format's tolerance; every tensor the ops save is produced, because the
///             backward pass is fused independently;
///   backward: reads only those saved tensors; same gradients;
///   joint:    the forward and backward pair equals the unfused pair; it may keep less (see `saves`);
///   fused quantization: the same bits; the chain is the producer of the tensor and the consumer of its quantized
///             tensors.
struct FusionRule {
  std::string name;
  FusionPass pass = FusionPass::Forward;
  RuleOrigin origin = RuleOrigin::Fuseline;
  std::string summary;  // one sentence: its saving, and why it is legal
  std::vector<ChainStep> chain;
  std::vector<Condition> conditions;
  /// Name of the kernel that a backend must have.
  std::string becomes;
  /// Nothing: any device may have it.
  std::optional<HardwareNeed> hardware = std::nullopt;
  /// Joint rules only: tensors kept for backward in place of the members' own contexts.
  std::function<std::vector<MemberTensor>(const Match&)> saves;
  /// Price of the fusion, as a sentence. A rule with a price is legal but applies on request only
  /// (`RuleSwitches::with`): it trades time for memory.
  std::string price;
  /// Backward rules only: the GEMMs of the first op read the gradient of the last op's output, as their own quantizers
  /// make it. Otherwise a quantized gradient must reach its op from outside.
  bool readsLastGradientInGemms = false;
  /// The kernel itself quantizes the operands of its GEMMs. Otherwise a quantized tensor must be in memory.
  bool quantizesInside = false;
  /// Forward rules only: ops outside may also read tensors between the fused ops; the kernel then writes them.
  bool writesBranches = false;
  /// Joint rules of our own only: the kernel also saves work in inference, where they are else left out.
  bool servesInference = false;
  /// Fused quantization only: the op that produces the tensor finds its amax, with which the other one quantizes it.
  bool findsAmaxOnly = false;
  /// An attribute of the first op that, if set, requests the rule, like RuleSwitches::with.
  std::string askedBy = {};
  /// The environment variable without which TransformerEngine does not have the fusion; empty: it always has it.
  std::string teVariable = {};

  /// Does the chain take runs of any length?
  bool hasRepeatedStep() const;
};

/// The user's settings of the rule set. Every entry is "RULE", everywhere, or "RULE@OP", at one op.
struct RuleSwitches {
  std::vector<std::string> without;  // never apply
  std::vector<std::string> with;     // apply although it has a price, or although others gain more
  bool operator==(const RuleSwitches&) const = default;
};

/// The rule set: an ordered list for each pass; order is priority.
class RuleCatalog {
 public:
  /// Errors: a rule without a name, a chain or a kernel, a name that is taken, a joint rule that does not define the
  /// tensors it keeps for backward, or another one that does. Nothing is registered then.
  Result<void> registerForwardFusion(FusionRule rule, bool prepend = false);
  Result<void> registerBackwardFusion(FusionRule rule, bool prepend = false);
  Result<void> registerForwardBackwardFusion(FusionRule rule, bool prepend = false);
  /// Registers in the list of its own pass.
  Result<void> registerFusion(FusionRule rule, bool prepend = false);

  const std::vector<std::shared_ptr<const FusionRule>>& rules(FusionPass pass) const;
  std::vector<const FusionRule*> all() const;  // joint, forward, backward, fused quantization
  const FusionRule* find(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const FusionRule>> m_rules[5];
};

const RuleCatalog& builtinRules();

}  // namespace fuseline
