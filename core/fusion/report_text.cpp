// A fusion report as a tree, as JSON and as Graphviz DOT.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/quant/apply_recipe.h"
#include "core/support/text.h"

#include <numeric>

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

std::string listText(const Graph& graph, std::string_view title, const std::vector<FusedOperation>& list) {
  const std::size_t numOps = std::accumulate(list.begin(), list.end(), std::size_t{0},
                                             [](std::size_t sum, const auto& e) { return sum + e.nodes.size(); });
  std::string text = fmt::format("{} ({} {}, {} {})\n", title, list.size(), list.size() == 1 ? "entry" : "entries",
                                 numOps, numOps == 1 ? "op" : "ops");
  for (std::size_t i = 0; i < list.size(); ++i)
    text += fmt::format("{} {}\n", i + 1 == list.size() ? "└─" : "├─", entryText(graph, list[i]));
  return text;
}

std::string worthText(const Attempt& attempt, const DeviceModel& device) {
  return attempt.saving ? "  " + gainText(*attempt.saving, attempt.measured.get(), device) : "";
}

std::string attemptText(const Graph& graph, const Attempt& attempt, const DeviceModel& device) {
  const std::string head = fmt::format("{:<28} {:<9} {}", attempt.rule->name, passName(attempt.rule->pass),
                                       fmt::join(idListOf(graph, attempt.nodes), " + "));
  const bool isFused = attempt.outcome == Outcome::Fused;
  const std::string body =
      isFused ? worthText(attempt, device)
              : fmt::format("  {}: {}", outcomeName(attempt.outcome), shellExplanation(graph, attempt));
  return fmt::format("  {} {}{}\n", isFused ? "✓" : "·", head, body);
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

/// What the predicted times rest on; nothing where no time is predicted.
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

/// By the name of what is quantized: "fc1.input"; of an amax alone "amax:fc1.input".
Json handOversJson(const Graph& graph, const FusionReport& report) {
  Json json = Json::array();
  for (const HandOver& handOver : report.handOvers) {
    const Node& reader = graph.node(handOver.reader);
    const std::string name = (handOver.isAmaxOnly ? "amax:" : "") + quantizedName(reader, handOver.type);
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
          {"measured", toJson(attempt.measured.get())}};
}

/// A label inside double quotes.
std::string dotQuoted(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\"\\", at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return "\"" + text + "\"";
}

/// One pass as a cluster: its ops, what flows between them, and its fusions as clusters within.
class DotPass {
 public:
  DotPass(const Graph& graph, const std::vector<FusedOperation>& entries, Phase phase)
      : m_graph(graph), m_entries(entries), m_phase(phase) {}

  std::string text() const {
    std::string text = fmt::format("  subgraph cluster_{} {{\n    label={};\n", phaseName(m_phase), phaseName(m_phase));
    for (const Node& node : m_graph.nodes())
      text += fmt::format("    {} [label={}];\n", name(node.id), dotQuoted(node.id + "\n" + node.operation->name));
    for (const Value& value : m_graph.values()) text += edges(value);
    for (const GraphOutput& output : m_graph.outputs())
      text += edge(sourceOf(m_graph.value(output.value)), "output " + output.name, "");
    for (std::size_t i = 0; i < m_entries.size(); ++i)
      if (m_entries[i].isFused()) text += cluster(m_entries[i], i);
    return text + "  }\n";
  }

 private:
  bool isBackward() const { return m_phase == Phase::Backward; }

  /// An op is a box in each pass.
  std::string name(const std::string& id) const { return dotQuoted(isBackward() ? "backward " + id : id); }

  std::string sourceOf(const Value& value) const {
    return value.producer < 0 ? value.name : m_graph.node(value.producer).id;
  }

  /// Gradients flow the other way.
  std::string edge(std::string from, std::string to, const std::string& label) const {
    if (isBackward()) std::swap(from, to);
    const std::string attributes = label.empty() ? "" : fmt::format(" [label={}]", dotQuoted(label));
    return fmt::format("    {} -> {}{};\n", name(from), name(to), attributes);
  }

  std::string edges(const Value& value) const {
    std::string text;
    for (const Use& use : value.uses) text += edge(sourceOf(value), m_graph.node(use.node).id, toString(value.spec));
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
};

}  // namespace

std::string toText(const Graph& graph, const std::vector<FusedOperation>& list) {
  std::string text;
  for (const FusedOperation& entry : list) text += entryText(graph, entry) + "\n";
  return text;
}

std::string planTree(const Graph& graph, const FusionReport& report) {
  const std::string forward = listText(graph, "forward", report.forward);
  if (graph.pass() != PassKind::Training) return forward;
  return forward + listText(graph, "backward, executed from last to first", report.backward);
}

std::string toTree(const Graph& graph, const FusionReport& report) {
  std::string text = planTree(graph, report) + "attempts\n";
  for (const Attempt& attempt : report.attempts) text += attemptText(graph, attempt, report.device);
  return text + deviceText(report.device);
}

Json planJson(const Graph& graph, const FusionReport& report) {
  return {{"forward", listJson(graph, report.forward)},
          {"backward", listJson(graph, report.backward)},
          {"handOvers", handOversJson(graph, report)}};
}

Json toJson(const Graph& graph, const FusionReport& report) {
  Json attempts = Json::array();
  for (const Attempt& attempt : report.attempts) attempts.push_back(attemptJson(graph, attempt, report.device));
  Json json = {{"rules", report.book == RuleBook::Te ? "te" : "all"}};
  json.update(planJson(graph, report));
  json["attempts"] = std::move(attempts);
  json["device"] = toJson(report.device);
  return json;
}

std::string toDot(const Graph& graph, const FusionReport& report) {
  std::string text = "digraph pipeline {\n  rankdir=LR; node [shape=box];\n";
  text += DotPass(graph, report.forward, Phase::Forward).text();
  if (graph.pass() == PassKind::Training) text += DotPass(graph, report.backward, Phase::Backward).text();
  return text + "}\n";
}

}  // namespace fuseline
