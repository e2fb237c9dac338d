// A fusion report as a tree, as JSON and as Graphviz DOT.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/broken_chains.h"
#include "core/fusion/fuser.h"
#include "core/fusion/instance_lines.h"
#include "core/fusion/report_schema.h"
#include "core/quant/apply_recipe.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::vector<std::string> idListOf(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> ids;
  for (const NodeId id : nodes) ids.push_back(graph.node(id).id);
  return ids;
}

std::string entryText(const Graph& graph, const FusedOperation& entry) {
  const std::string ids = fmt::format("{}", fmt::join(idListOf(graph, entry.nodes), " + "));
  const std::string note = inParentheses(entry.note(graph));
  if (!entry.isFused()) return fmt::format("{} ({}){}", ids, entry.name(graph), note);
  return fmt::format("[{}]  {} ({}, {}){}{}", ids, entry.rule->name, passName(entry.rule->pass),
                     originName(entry.rule->origin), note, inParentheses(entry.caveat));
}

ListLine lineOf(const Graph& graph, const InstanceNames& names, const FusedOperation& entry) {
  const Node& node = graph.node(entry.nodes.front());
  std::string text = entryText(graph, entry);
  std::string key = names.shared(text).text;
  return {.text = std::move(text), .key = std::move(key), .instance = instanceOf(node)};
}

/// The branches of a tree.
std::string branchesOf(const std::vector<ListLine>& lines) {
  std::vector<std::string> texts;
  for (const ListLine& line : lines)
    for (std::size_t at = 0; at <= line.text.size();) {
      const std::size_t end = std::min(line.text.find('\n', at), line.text.size());
      texts.push_back(line.text.substr(at, end - at));
      at = end + 1;
    }
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i)
    text += fmt::format("{} {}\n", i + 1 == texts.size() ? "└─" : "├─", texts[i]);
  return text;
}

std::string listText(const Graph& graph, std::string_view title, const std::vector<FusedOperation>& list) {
  const std::size_t numOps = std::accumulate(list.begin(), list.end(), std::size_t{0},
                                             [](std::size_t sum, const auto& e) { return sum + e.nodes.size(); });
  std::string text = fmt::format("{} ({} {}, {} {})\n", title, list.size(), list.size() == 1 ? "entry" : "entries",
                                 numOps, numOps == 1 ? "op" : "ops");
  const InstanceNames names(graph);
  std::vector<ListLine> lines;
  for (const FusedOperation& entry : list) lines.push_back(lineOf(graph, names, entry));
  return text + branchesOf(foldRepeats(std::move(lines)));
}

std::string worthText(const Attempt& attempt, const DeviceModel& device) {
  return attempt.saving ? "  " + gainText(*attempt.saving, attempt.measured.get(), device) : "";
}

/// count: how many attempts say so, each of another instance.
std::string attemptText(const Graph& graph, const Attempt& attempt, std::size_t count, const DeviceModel& device) {
  const std::string head = fmt::format("{:<28} {:<9} {}", attempt.rule->name, passName(attempt.rule->pass),
                                       fmt::join(idListOf(graph, attempt.nodes), " + "));
  const bool isFused = attempt.outcome == Outcome::Fused;
  const std::string body = isFused
                               ? worthText(attempt, device) + inEachInstance(graph, attempt, count)
                               : fmt::format("  {}: {}{}", outcomeName(attempt.outcome),
                                             shellExplanation(graph, attempt), sameElsewhere(graph, attempt, count));
  return fmt::format("  {} {}{}\n", isFused ? "✓" : "·", head, body);
}

/// Attempts of one reason: "· fc1  broken chain: fc1 (BasicLinear) is followed by ...; expected ..."
std::string sharedReasonText(const Graph& graph, const std::vector<const Attempt*>& attempts, std::size_t count) {
  const BrokenChains chains = brokenChains(attempts);
  const std::string head = fmt::format("{:<38} {}", fmt::format("{} rules", attempts.size()),
                                       fmt::join(idListOf(graph, chains.first->nodes), " + "));
  return fmt::format("  · {}  {}: {}; expected: {}.{}\n", head, outcomeName(Outcome::BrokenChain), chains.reason,
                     chains.rulesNeeds, sameElsewhere(graph, *chains.first, count));
}

/// counts: by attempt, how many say the same.
std::string attemptsText(const Graph& graph, const std::map<const Attempt*, std::size_t>& counts,
                         const std::vector<const Attempt*>& attempts, const DeviceModel& device) {
  std::string text;
  for (const std::vector<const Attempt*>& same : groupedByReason(attempts)) {
    const std::size_t count = counts.at(same.front());
    text += same.size() > 1 ? sharedReasonText(graph, same, count) : attemptText(graph, *same.front(), count, device);
  }
  return text;
}

Json toJson(const std::optional<Saving>& saving, const DeviceModel& device) {
  if (!saving) return nullptr;
  const std::optional<double> ns = predictedNs(*saving, device);
  return {{"bytes", saving->bytes}, {"launches", saving->launches}, {"predictedNs", ns ? Json(*ns) : Json(nullptr)}};
}

Json toJson(const MeasuredGain* gain) {
  if (!gain) return nullptr;
  return {{"gainNs", gain->gainNs},
          {"speedup", gain->speedup},
          {"speedupLow", gain->speedupLow},
          {"speedupHigh", gain->speedupHigh},
          {"device", gain->device}};
}

Json toJson(const DeviceModel& device) {
  if (!device.isKnown()) return nullptr;
  return {{"bandwidthBytesPerSecond", device.bandwidthBytesPerSecond},
          {"launchSeconds", device.launchSeconds},
          {"source", device.source}};
}

/// Basis of the predicted times; nothing if no time is predicted.
std::string deviceText(const DeviceModel& device) {
  if (!device.isKnown()) return "";
  return fmt::format("predictions: {:.1f} GB/s and {} a launch: {}\n", device.bandwidthBytesPerSecond / 1e9,
                     formatDuration(device.launchSeconds * 1e9), device.source);
}

Json listJson(const Graph& graph, const std::vector<FusedOperation>& list) {
  Json json = Json::array();
  for (const FusedOperation& entry : list)
    json.push_back({{"name", entry.name(graph)},
                    {"rule", entry.isFused() ? Json(entry.rule->name) : Json(nullptr)},
                    {"ops", idListOf(graph, entry.nodes)}});
  return json;
}

/// By the name of the quantized tensor: "fc1.input"; of an amax alone "amax:fc1.input".
Json fusedOperandsJson(const Graph& graph, const FusionReport& report) {
  Json json = Json::array();
  for (const FusedOperand& fusedOperand : report.fusedOperands) {
    const Node& reader = graph.node(fusedOperand.reader);
    const std::string name = (fusedOperand.isAmaxOnly ? "amax:" : "") + quantizedName(reader, fusedOperand.type);
    json.push_back({{"name", name}, {"ops", {reader.id}}});
  }
  return json;
}

Json attemptJson(const Graph& graph, const Attempt& attempt, const DeviceModel& device) {
  Json repairs = Json::array();
  for (const Repair& repair : attempt.repairs) repairs.push_back(repair.label);
  return {{"rule", attempt.rule->name},
          {"pass", passName(attempt.rule->pass)},
          {"ops", idListOf(graph, attempt.nodes)},
          {"stepsMatched", attempt.stepsMatched},
          {"outcome", outcomeName(attempt.outcome)},
          {"explanation", attempt.explanation},
          {"request", requestFor(graph, attempt)},
          {"repairs", repairs},
          {"saving", toJson(attempt.saving, device)},
          {"measured", toJson(attempt.measured.get())},
          {"instances", Json::array()}};
}

/// Each attempt with all that is known of it; those that say the same of other instances are with the first of them.
Json attemptsJson(const Graph& graph, const FusionReport& report) {
  Json attempts = Json::array();
  for (const Attempt& attempt : report.attempts) attempts.push_back(attemptJson(graph, attempt, report.device));
  for (const std::vector<std::size_t>& group : attemptGroups(graph, report.attempts, report.device))
    for (const std::size_t i : group)
      attempts[group.front()]["instances"].push_back(graph.node(report.attempts[i].nodes.front()).id);
  return attempts;
}

/// A label inside double quotes.
std::string dotQuoted(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\"\\", at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return "\"" + text + "\"";
}

/// One pass as a cluster: its ops, the tensors between them, and its fusions as nested clusters.
class DotPass {
 public:
  DotPass(const Graph& graph, const std::vector<FusedOperation>& entries, Phase phase)
      : m_graph(graph), m_entries(entries), m_phase(phase), m_closed(closedInstances(graph)) {}

  std::string text() const {
    std::string text = fmt::format("  subgraph cluster_{} {{\n    label={};\n", phaseName(m_phase), phaseName(m_phase));
    std::set<std::string> instances;
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id) {
      const Node& node = m_graph.node(id);
      const std::string label =
          isClosed(id) ? boxOf(id) + "\ninstance of a block" : node.id + "\n" + node.operation->name;
      if (!isClosed(id) || instances.insert(boxOf(id)).second)
        text += fmt::format("    {} [label={}];\n", name(boxOf(id)), dotQuoted(label));
    }
    for (const Value& value : m_graph.values()) text += edges(value);
    for (const GraphOutput& output : m_graph.outputs())
      text += edge(sourceOf(m_graph.value(output.value)), "output " + output.name, "");
    for (std::size_t i = 0; i < m_entries.size(); ++i)
      if (m_entries[i].isFused() && std::ranges::none_of(m_entries[i].nodes, [&](NodeId id) { return isClosed(id); }))
        text += cluster(m_entries[i], i);
    return text + "  }\n";
  }

 private:
  bool isBackward() const { return m_phase == Phase::Backward; }

  /// An op is a box in each pass.
  std::string name(const std::string& id) const { return dotQuoted(isBackward() ? "backward " + id : id); }

  /// In an instance that is drawn as one box.
  bool isClosed(NodeId id) const { return !m_closed[static_cast<std::size_t>(id)].empty(); }
  const std::string& boxOf(NodeId id) const {
    return isClosed(id) ? m_closed[static_cast<std::size_t>(id)] : m_graph.node(id).id;
  }

  std::string sourceOf(const Value& value) const { return value.producer < 0 ? value.name : boxOf(value.producer); }

  /// Gradients flow the other way.
  std::string edge(std::string from, std::string to, const std::string& label) const {
    if (isBackward()) std::swap(from, to);
    const std::string attributes = label.empty() ? "" : fmt::format(" [label={}]", dotQuoted(label));
    return fmt::format("    {} -> {}{};\n", name(from), name(to), attributes);
  }

  std::string edges(const Value& value) const {
    std::string text;
    std::set<std::string> instances;  // a value enters one by one wire
    for (const Use& use : value.uses) {
      const std::string& reader = boxOf(use.node);
      if (reader == sourceOf(value) || (isClosed(use.node) && !instances.insert(reader).second)) continue;
      text += edge(sourceOf(value), reader, toString(value.spec));
    }
    return text;
  }

  std::string cluster(const FusedOperation& entry, std::size_t index) const {
    std::string text = fmt::format("    subgraph cluster_{}_{} {{\n      label={}; style={};\n", phaseName(m_phase),
                                   index, dotQuoted(entry.rule->name), isBackward() ? "\"rounded,dashed\"" : "rounded");
    for (const std::string& id : idListOf(m_graph, entry.nodes)) text += fmt::format("      {};\n", name(id));
    return text + "    }\n";
  }

  const Graph& m_graph;
  const std::vector<FusedOperation>& m_entries;
  Phase m_phase;
  std::vector<std::string> m_closed;  // by node
};

Json savingSchema() {
  return schema::orNull(schema::object(
      {{"bytes", schema::integer("Minimum memory traffic saved, by the model.")},
       {"launches", schema::integer("Launches saved; a step counts as one unless the device reports more.")},
       {"predictedNs", schema::orNull(schema::number("Predicted time saved; null: no device was measured."))}}));
}

Json gainSchema() {
  return schema::orNull(
      schema::object({{"gainNs", schema::number("Median of unfused - fused time; negative: fused is slower.")},
                      {"speedup", schema::number("Unfused / fused, per round.")},
                      {"speedupLow", schema::number("Lower bound of the 95 % interval.")},
                      {"speedupHigh", schema::number("Upper bound of the 95 % interval.")},
                      {"device", schema::text("Device of the measurement.")}}));
}

Json deviceModelSchema() {
  return schema::orNull(schema::object({{"bandwidthBytesPerSecond", schema::number("Memory bandwidth.")},
                                        {"launchSeconds", schema::number("Time of one launch.")},
                                        {"source", schema::text("Source of the figures.")}}));
}

}  // namespace

std::string toText(const Graph& graph, const std::vector<FusedOperation>& list) {
  std::string text;
  for (const FusedOperation& entry : list) text += entryText(graph, entry) + "\n";
  return text;
}

std::string planTree(const Graph& graph, const FusionReport& report) {
  const std::string forward = listText(graph, "forward", report.forward);
  if (graph.pass() != ExecutionMode::Training) return forward;
  return forward + listText(graph, "backward, executed from last to first", report.backward);
}

std::string toTree(const Graph& graph, const FusionReport& report) {
  std::vector<const Attempt*> attempts;
  std::map<const Attempt*, std::size_t> counts;
  for (const std::vector<std::size_t>& group : attemptGroups(graph, report.attempts, report.device)) {
    attempts.push_back(&report.attempts[group.front()]);
    counts.emplace(attempts.back(), group.size());
  }
  return planTree(graph, report) + "attempts\n" + attemptsText(graph, counts, attempts, report.device) +
         deviceText(report.device);
}

Json planJson(const Graph& graph, const FusionReport& report) {
  return {{"forward", listJson(graph, report.forward)},
          {"backward", listJson(graph, report.backward)},
          {"fusedQuantizations", fusedOperandsJson(graph, report)}};
}

Json toJson(const Graph& graph, const FusionReport& report) {
  Json json = {{"rules", report.book == RuleBook::Te ? "te" : "all"}};
  json.update(planJson(graph, report));
  json["attempts"] = attemptsJson(graph, report);
  json["device"] = toJson(report.device);
  return json;
}

Json attemptSchema() {
  schema::Fields fields = {{"rule", schema::text("Rule that was tried.")},
                           {"pass", schema::choice({"joint", "forward", "backward"})},
                           {"ops", schema::texts("Basic ops, in pipeline order.")}};
  fields.emplace_back("stepsMatched", schema::integer("Steps of the rule's chain that matched."));
  fields.emplace_back("outcome", schema::choice({"fused", "broken chain", "other consumer", "condition failed",
                                                 "taken by another fusion", "no kernel on this device", "switched off",
                                                 "on request", "measured slower"}));
  fields.emplace_back("explanation", schema::text("One sentence with the values of this pipeline."));
  fields.emplace_back("request",
                      schema::text("Value for --with if the fusion is possible but only on request; else empty."));
  fields.emplace_back("repairs", schema::texts("Edits after which the condition holds."));
  fields.emplace_back("saving", savingSchema());
  fields.emplace_back("measured", gainSchema());
  Json instances = schema::texts();
  instances["description"] =
      "First ops of this attempt and of equal attempts in other instances of a block; empty: an earlier attempt lists "
      "them.";
  fields.emplace_back("instances", std::move(instances));
  return schema::object(fields);
}

Json fusionSchema() {
  const Json entry = schema::object({{"name", schema::text("Name of the rule, or of the op.")},
                                     {"rule", schema::orNull(schema::text("Fusion rule; null: a basic op."))},
                                     {"ops", schema::texts("Basic ops, in pipeline order.")}});
  return schema::object(
      {{"rules", schema::choice({"te", "all"})},
       {"forward", schema::list(entry)},
       {"backward", schema::list(entry)},
       {"fusedQuantizations",
        schema::list(schema::object({{"name", schema::text("Tensors that the producing step quantizes; after "
                                                           "\"amax:\", tensors of which it computes the amax.")},
                                     {"ops", schema::texts("Basic ops, in pipeline order.")}}))},
       {"attempts", schema::list(attemptSchema())},
       {"device", deviceModelSchema()}});
}

std::string toDot(const Graph& graph, const FusionReport& report) {
  std::string text = "digraph pipeline {\n  rankdir=LR; node [shape=box];\n";
  text += DotPass(graph, report.forward, Phase::Forward).text();
  if (graph.pass() == ExecutionMode::Training) text += DotPass(graph, report.backward, Phase::Backward).text();
  return text + "}\n";
}

}  // namespace fuseline
