// Finds marks, ghosts and links of a comparison.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/change_map.h"

#include "core/document/block_operation.h"

#include <algorithm>
#include <set>

namespace fuseline {

namespace {

bool isOfNode(DocumentChange::Section section) {
  return section == DocumentChange::Section::Ops || section == DocumentChange::Section::Inputs ||
         section == DocumentChange::Section::Outputs;
}

/// Wires, and the links to outputs as wires without a port at their end.
std::vector<Wire> allLinks(const PipelineDocument& document) {
  std::vector<Wire> links = document.wires();
  for (const DocumentOutput& output : document.outputs())
    if (!output.from.node.empty()) links.push_back({output.from, {output.id, {}}});
  return links;
}

using LinkSet = std::set<std::pair<Endpoint, Endpoint>>;

LinkSet setOf(const std::vector<Wire>& links) {
  LinkSet set;
  for (const Wire& link : links) set.emplace(link.from, link.to);
  return set;
}

class ChangeMapper {
 public:
  ChangeMapper(const PipelineDocument& base, const PipelineDocument& next, const std::vector<DocumentChange>& changes)
      : m_base(base), m_next(next), m_changes(changes), m_renames(renamedIds(changes)) {}

  ChangeMap run() && {
    for (std::size_t i = 0; i < m_changes.size(); ++i)
      if (m_changes[i].block.empty() && isOfNode(m_changes[i].section)) note(i);
    markInstances();
    findLinks();
    for (ChangeMap::Ghost& ghost : m_map.ghosts) findNeighbour(ghost);
    return std::move(m_map);
  }

 private:
  void note(std::size_t index) {
    const DocumentChange& change = m_changes[index];
    if (change.kind == DocumentChange::Kind::Removed) {
      m_map.ghosts.push_back({.id = change.id, .change = index, .baseNeighbour = {}, .neighbour = {}});
      m_gone.insert(change.id);
    } else {
      const bool isRenamed = change.kind == DocumentChange::Kind::Renamed;
      m_map.marks[isRenamed ? change.newId : change.id] = {.kind = change.kind, .change = index};
    }
  }

  /// Marks instances of blocks that changed inside, directly or through inner blocks.
  void markInstances() {
    std::map<std::string, std::size_t> changed;
    for (std::size_t i = 0; i < m_changes.size(); ++i)
      if (!m_changes[i].block.empty()) changed.emplace(m_changes[i].block, i);
    for (std::size_t numBefore = 0; numBefore != changed.size();) {
      numBefore = changed.size();
      for (const auto& [name, block] : m_next.blocks())
        for (const DocumentOp& op : block.ops)
          if (const auto inner = changed.find(std::string(blockNameOf(op))); inner != changed.end())
            changed.emplace(name, inner->second);
    }
    for (const DocumentOp& op : m_next.ops())
      if (const auto found = changed.find(std::string(blockNameOf(op))); found != changed.end())
        m_map.marks.emplace(op.id, ChangeMap::Mark{.kind = DocumentChange::Kind::Changed, .change = found->second});
  }

  ChangeMap::End nowOf(const Endpoint& endpoint) const {
    if (m_gone.contains(endpoint.node)) return {.at = endpoint, .isGhost = true};
    const auto renamed = m_renames.find(endpoint.node);
    return {.at = renamed == m_renames.end() ? endpoint : Endpoint{renamed->second, endpoint.port}};
  }

  void findLinks() {
    const std::vector<Wire> before = allLinks(m_base);
    const std::vector<Wire> after = allLinks(m_next);
    const LinkSet present = setOf(after);
    LinkSet known;
    for (const Wire& link : before) {
      m_sources.emplace(link.to.node, link.from.node);
      m_readers.emplace(link.from.node, link.to.node);
      const ChangeMap::End from = nowOf(link.from);
      const ChangeMap::End to = nowOf(link.to);
      const bool isGhost = from.isGhost || to.isGhost;
      if (!isGhost) known.emplace(from.at, to.at);
      if (isGhost || !present.contains({from.at, to.at})) m_map.goneLinks.push_back({from, to});
    }
    for (const Wire& link : after)
      if (!known.contains({link.from, link.to})) m_map.newLinks.push_back(link);
  }

  /// Upstream first: later ops take over the position.
  void findNeighbour(ChangeMap::Ghost& ghost) const {
    for (const bool isUpstream : {true, false})
      if (const std::string found = nearestFrom(ghost.id, isUpstream); !found.empty()) {
        ghost.baseNeighbour = found;
        ghost.neighbour = nowOf(Endpoint{found, {}}).at.node;
        return;
      }
  }

  std::string nearestFrom(const std::string& id, bool isUpstream) const {
    const auto& neighbours = isUpstream ? m_sources : m_readers;
    std::set<std::string> seen = {id};
    std::vector<std::string> open = {id};
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto [first, last] = neighbours.equal_range(open[i]);
      for (auto entry = first; entry != last; ++entry) {
        const std::string& there = entry->second;
        if (!seen.insert(there).second) continue;
        if (!m_gone.contains(there) && m_base.idExists(there)) return there;
        open.push_back(there);
      }
    }
    return {};
  }

  const PipelineDocument& m_base;
  const PipelineDocument& m_next;
  const std::vector<DocumentChange>& m_changes;
  const std::map<std::string, std::string> m_renames;
  std::set<std::string> m_gone;
  std::multimap<std::string, std::string> m_sources;  // of the base: whom a node reads
  std::multimap<std::string, std::string> m_readers;
  ChangeMap m_map;
};

}  // namespace

ChangeMap changeMap(const PipelineDocument& base, const PipelineDocument& next,
                    const std::vector<DocumentChange>& changes) {
  return ChangeMapper(base, next, changes).run();
}

}  // namespace fuseline
