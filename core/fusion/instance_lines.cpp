// Compares lines without their instances.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/instance_lines.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kLeastRepeats = 3;

std::string keyOf(const Graph& graph, const InstanceNames& names, const Attempt& attempt, const DeviceModel& device) {
  std::string key = fmt::format("{}\n{}\n{}", attempt.rule->name, outcomeName(attempt.outcome), attempt.stepsMatched);
  for (const NodeId id : attempt.nodes) key += "\n" + names.shared(graph.node(id).id).text;
  key += "\n" + names.shared(attempt.explanation).text;
  for (const Repair& repair : attempt.repairs) key += "\n" + names.shared(repair.label).text;
  if (attempt.saving) key += "\n" + gainText(*attempt.saving, attempt.measured.get(), device);
  return key;
}

/// By position that of the next line with the same key; the number of lines: there is none.
std::vector<std::size_t> nextOccurrences(const std::vector<ListLine>& lines) {
  std::vector<std::size_t> next(lines.size(), lines.size());
  std::unordered_map<std::string_view, std::size_t> later;
  for (std::size_t i = lines.size(); i-- > 0;) {
    const auto [found, isNew] = later.try_emplace(lines[i].key, i);
    if (!isNew) next[i] = std::exchange(found->second, i);
  }
  return next;
}

/// How often the lines [at, at + period) come in a row.
std::size_t numRepeats(const std::vector<ListLine>& lines, std::size_t at, std::size_t period) {
  std::size_t same = 0;
  while (at + period + same < lines.size() && lines[at + same].key == lines[at + period + same].key) ++same;
  return same / period + 1;
}

ListLine foldedRun(const std::vector<ListLine>& lines, std::size_t at, std::size_t period, std::size_t count) {
  ListLine folded{.text = {}, .key = {}, .instance = lines[at].instance};
  for (std::size_t i = at; i < at + period; ++i) {
    folded.text += lines[i].text + "\n";
    folded.key += lines[i].key + "\n";
  }
  folded.key += fmt::format("{}", count);
  folded.text +=
      fmt::format("… the same {} {} more times, {} to {}", period == 1 ? "entry" : fmt::format("{} entries", period),
                  count - 1, lines[at + period].instance, lines[at + count * period - 1].instance);
  return folded;
}

/// Folds one level: repetitions within repetitions need another call.
std::vector<ListLine> foldedOnce(const std::vector<ListLine>& lines) {
  const std::vector<std::size_t> next = nextOccurrences(lines);
  std::vector<ListLine> folded;
  for (std::size_t i = 0; i < lines.size();) {
    const std::size_t period = next[i] - i;
    const std::size_t count = next[i] < lines.size() ? numRepeats(lines, i, period) : 1;
    if (count < kLeastRepeats) {
      folded.push_back(lines[i++]);
      continue;
    }
    folded.push_back(foldedRun(lines, i, period, count));
    i += count * period;
  }
  return folded;
}

}  // namespace

InstanceGroups attemptGroups(const Graph& graph, std::span<const Attempt> attempts, const DeviceModel& device) {
  const InstanceNames names(graph);
  std::vector<std::string> keys;
  keys.reserve(attempts.size());
  for (const Attempt& attempt : attempts) keys.push_back(keyOf(graph, names, attempt, device));
  return groupsOf(keys);
}

std::string sameElsewhere(const Graph& graph, const Attempt& attempt, std::size_t count) {
  return sameInMoreInstances(count, graph.node(attempt.nodes.front()).block);
}

std::string inEachInstance(const Graph& graph, const Attempt& attempt, std::size_t count) {
  return count < 2
             ? ""
             : fmt::format(" in each of {} instances of block {}", count, graph.node(attempt.nodes.front()).block);
}

std::vector<ListLine> foldRepeats(std::vector<ListLine> lines) {
  for (std::size_t before = lines.size() + 1; lines.size() < before;) {
    before = lines.size();
    lines = foldedOnce(lines);
  }
  return lines;
}

}  // namespace fuseline
