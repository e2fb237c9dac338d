// Reads and writes the keys of reroute points.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/reroutes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kArrow = " > ";
constexpr std::string_view kNumber = " #";

/// Parts of a key; nullopt: it is the id of a node.
struct Key {
  std::string_view from;
  std::string_view to;
  std::string_view number;  // " #2"; empty: the first one
};

std::optional<Key> keyOf(std::string_view id) {
  const std::size_t arrow = id.find(kArrow);
  if (arrow == std::string_view::npos) return std::nullopt;
  const std::string_view rest = id.substr(arrow + kArrow.size());
  const std::size_t number = std::min(rest.find(kNumber), rest.size());
  return Key{id.substr(0, arrow), rest.substr(0, number), rest.substr(number)};
}

std::string_view nodeOf(std::string_view end) { return end.substr(0, end.find('.')); }

std::string renamedEnd(std::string_view end, std::string_view node, std::string_view newName) {
  if (nodeOf(end) != node) return std::string(end);
  return std::string(newName) + std::string(end.substr(node.size()));
}

}  // namespace

std::string rerouteKey(const Link& link) { return toString(link.from) + std::string(kArrow) + toString(link.to); }

std::map<std::string, std::vector<Reroute>> reroutesOf(const DocumentBlock& block) {
  std::map<std::string, std::vector<Reroute>> reroutes;
  for (const auto& [id, position] : block.positions)
    if (const std::optional<Key> key = keyOf(id))
      reroutes[id.substr(0, id.size() - key->number.size())].push_back({id, position});
  return reroutes;
}

Edit addReroute(const DocumentBlock& block, const Link& link, Position position, std::size_t before) {
  const std::string key = rerouteKey(link);
  const auto all = reroutesOf(block);
  const auto found = all.find(key);
  const std::vector<Reroute> own = found == all.end() ? std::vector<Reroute>() : found->second;
  std::string id = key;
  for (int number = 2; std::ranges::count(own, id, &Reroute::id) > 0; ++number)
    id = fmt::format("{}{}{}", key, kNumber, number);
  const auto isNext = [&](const auto& entry) { return before < own.size() && entry.first == own[before].id; };
  const auto next = std::ranges::find_if(block.positions, isNext);
  return EditGroup{"Add a reroute point",
                   {MoveNode{std::move(id), position, static_cast<int>(next - block.positions.begin())}}};
}

std::vector<Edit> removeReroutes(const DocumentBlock& block, const Link& link) {
  std::vector<Edit> edits;
  const std::string key = rerouteKey(link);
  for (const auto& [id, position] : block.positions)
    if (id.starts_with(key) && keyOf(id) && id.size() - keyOf(id)->number.size() == key.size())
      edits.emplace_back(MoveNode{.id = id, .position = std::nullopt});
  return edits;
}

bool isRerouteAt(std::string_view id, std::string_view node) {
  const std::optional<Key> key = keyOf(id);
  return key && (nodeOf(key->from) == node || nodeOf(key->to) == node);
}

std::string rerouteAfterRenaming(std::string_view id, std::string_view node, std::string_view newName) {
  const std::optional<Key> key = keyOf(id);
  if (!key) return std::string(id);
  return fmt::format("{}{}{}{}", renamedEnd(key->from, node, newName), kArrow, renamedEnd(key->to, node, newName),
                     key->number);
}

}  // namespace fuseline
