// Replaces instances by their blocks in texts, and groups the texts that are then equal.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/instances.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kBetweenWords = " \t\n(),;:+'\"[]";

/// The first `depth` parts of a path.
std::string outermost(const std::string& path, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < depth && end != std::string::npos; ++i) end = path.find('.', end == 0 ? 0 : end + 1);
  return path.substr(0, end);
}

std::size_t depthOf(const std::string& path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(path, '.'));
}

/// Instances that are deeper than this are closed; those of this depth are boxes.
std::vector<std::string> closedAt(const std::vector<std::string>& paths, std::size_t depth) {
  std::vector<std::string> closed;
  for (const std::string& path : paths) closed.push_back(depthOf(path) < depth ? "" : outermost(path, depth));
  return closed;
}

std::size_t numBoxes(const std::vector<std::string>& closed) {
  const std::set<std::string> boxes(closed.begin(), closed.end());
  const auto alone = static_cast<std::size_t>(std::ranges::count(closed, ""));
  return boxes.size() - (alone > 0 ? 1 : 0) + alone;
}

}  // namespace

std::string instanceOf(const Node& node) {
  const std::size_t end = node.path.rfind('.');
  return node.block.empty() || end == std::string::npos ? std::string() : node.path.substr(0, end);
}

InstanceNames::InstanceNames(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (std::string path = instanceOf(node); !path.empty()) m_blocks.try_emplace(std::move(path), node.block);
}

InstanceNames::Text InstanceNames::shared(std::string_view text) const {
  if (m_blocks.empty()) return {.text = std::string(text)};
  Text result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kBetweenWords), text.size());
    const std::string_view word = text.substr(0, end);
    std::size_t length = word.size();
    auto found = m_blocks.find(word);
    while (found == m_blocks.end() && length != 0) {
      const std::size_t dot = word.substr(0, length).rfind('.');
      length = dot == std::string_view::npos ? 0 : dot;
      found = m_blocks.find(word.substr(0, length));
    }
    if (found == m_blocks.end()) {
      result.text += word;
    } else {
      if (result.place.empty()) {
        result.block = found->second;
        result.place = word;
        if (result.place.ends_with('.')) result.place.pop_back();
      }
      result.text += fmt::format("{}/{}", found->second, word.substr(std::min(length + 1, word.size())));
    }
    const std::size_t next = std::min(text.find_first_not_of(kBetweenWords, end), text.size());
    result.text += text.substr(end, next - end);
    text.remove_prefix(next);
  }
  return result;
}

InstanceGroups groupsOf(const std::vector<std::string>& keys) {
  InstanceGroups groups;
  std::unordered_map<std::string_view, std::size_t> groupOf;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [group, isNew] = groupOf.try_emplace(keys[i], groups.size());
    if (isNew) groups.emplace_back();
    groups[group->second].push_back(i);
  }
  return groups;
}

std::string sameInMoreInstances(std::size_t count, std::string_view block) {
  if (count < 2) return {};
  return fmt::format(" The same holds in {} more instance{} of block {}.", count - 1, count == 2 ? "" : "s", block);
}

std::vector<std::string> closedInstances(const Graph& graph, std::size_t most) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes()) paths.push_back(instanceOf(node));
  std::size_t deepest = 0;
  for (const std::string& path : paths) deepest = std::max(deepest, depthOf(path));
  if (paths.size() <= most) return std::vector<std::string>(paths.size());
  std::vector<std::string> closed = closedAt(paths, 1);
  for (std::size_t depth = 2; depth <= deepest; ++depth) {
    std::vector<std::string> next = closedAt(paths, depth);
    if (numBoxes(next) > most) break;
    closed = std::move(next);
  }
  return closed;
}

}  // namespace fuseline
