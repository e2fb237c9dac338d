// Levels first: nodes of one level can form one region, because ops in between would have raised the level.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_regions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace fuseline {

namespace {

class RegionSearch {
 public:
  RegionSearch(const std::vector<GraphPart>& parts, const std::set<std::string>& given)
      : m_parts(parts),
        m_given(given),
        m_levels(parts.size(), 0),
        m_isComputed(parts.size(), false),
        m_roots(parts.size()) {
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const std::string& output : parts[part].outputs) m_makers.emplace(output, part);
    std::iota(m_roots.begin(), m_roots.end(), std::size_t{0});
  }

  std::vector<Region> run() {
    for (std::size_t part = 0; part < m_parts.size(); ++part) findLevel(part);
    for (std::size_t part = m_parts.size(); part-- > 0;) raiseLevel(part);
    for (std::size_t part = 0; part < m_parts.size(); ++part) join(part);
    while (dropThoseAtAnEnd()) {
    }
    return regions();
  }

 private:
  /// Only an earlier part counts; in a cycle no part is earlier.
  std::optional<std::size_t> makerOf(const std::string& tensor, std::size_t reader) const {
    const auto found = m_makers.find(tensor);
    return found == m_makers.end() || found->second >= reader ? std::nullopt : std::optional(found->second);
  }

  /// Is the part no op, and does it compute with outputs of ops? Masks and tables of angles do not.
  bool isInner(std::size_t part) const { return !m_parts[part].isOperation && m_isComputed[part]; }

  void findLevel(std::size_t part) {
    const GraphPart& reader = m_parts[part];
    m_isComputed[part] = reader.isOperation;
    for (const std::string& input : reader.inputs) {
      const auto maker = makerOf(input, part);
      m_isComputed[part] = m_isComputed[part] || m_given.contains(input) || (maker && m_isComputed[*maker]);
      if (!maker || !m_isComputed[*maker]) continue;
      const bool isBorder = m_parts[*maker].isOperation != reader.isOperation;
      m_levels[part] = std::max(m_levels[part], m_levels[*maker] + (isBorder ? 1 : 0));
      m_readers[*maker].push_back(part);
    }
  }

  /// Raises the level to that of its readers, so that nodes that prepare a tensor in several branches join the part
  /// they prepare it for.
  void raiseLevel(std::size_t part) {
    const auto readers = m_readers.find(part);
    if (!isInner(part) || readers == m_readers.end()) return;
    int highest = m_levels[readers->second.front()];
    for (const std::size_t reader : readers->second)
      highest = std::min(highest, m_levels[reader] - (m_parts[reader].isOperation ? 1 : 0));
    m_levels[part] = std::max(m_levels[part], highest);
  }

  std::size_t root(std::size_t part) {
    while (m_roots[part] != part) part = m_roots[part] = m_roots[m_roots[part]];
    return part;
  }

  void join(std::size_t part) {
    if (!isInner(part)) return;
    for (const std::string& input : m_parts[part].inputs)
      if (const auto maker = makerOf(input, part); maker && isInner(*maker) && m_levels[*maker] == m_levels[part])
        m_roots[root(*maker)] = root(part);
  }

  /// Does the part belong to a region that is left?
  bool isIn(std::size_t part) { return isInner(part) && !m_dropped.contains(root(part)); }

  /// Drops parts without a source or without a destination: they reach the end of the graph, or dropped parts.
  bool dropThoseAtAnEnd() {
    std::set<std::size_t> fed, read, all;
    for (std::size_t part = 0; part < m_parts.size(); ++part) {
      if (isIn(part)) all.insert(root(part));
      for (const std::string& input : m_parts[part].inputs) {
        if (isIn(part) && comesFromOutside(input, part)) fed.insert(root(part));
        if (const auto maker = makerOf(input, part); maker && isIn(*maker) && leaves(*maker, part))
          read.insert(root(*maker));
      }
    }
    const std::size_t before = m_dropped.size();
    for (const std::size_t region : all)
      if (!fed.contains(region) || !read.contains(region)) m_dropped.insert(region);
    return m_dropped.size() > before;
  }

  bool comesFromOutside(const std::string& input, std::size_t reader) {
    const auto maker = makerOf(input, reader);
    if (!maker) return m_given.contains(input);
    return m_parts[*maker].isOperation || (isIn(*maker) && root(*maker) != root(reader));
  }

  bool leaves(std::size_t maker, std::size_t reader) {
    return m_parts[reader].isOperation || (isIn(reader) && root(reader) != root(maker));
  }

  std::vector<Region> regions() {
    std::map<std::size_t, Region> byRoot;
    for (std::size_t part = 0; part < m_parts.size(); ++part) {
      if (isIn(part)) byRoot[root(part)].parts.push_back(part);
      for (const std::string& input : m_parts[part].inputs) {
        if (isIn(part) && comesFromOutside(input, part)) addOnce(byRoot[root(part)].inputs, input);
        if (const auto maker = makerOf(input, part); maker && isIn(*maker) && leaves(*maker, part))
          addOnce(byRoot[root(*maker)].outputs, input);
      }
    }
    std::vector<Region> found;
    for (auto& [part, region] : byRoot) found.push_back(std::move(region));
    std::ranges::stable_sort(found, {}, [this](const Region& region) { return m_levels[region.parts.front()]; });
    return found;
  }

  static void addOnce(std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }

  const std::vector<GraphPart>& m_parts;
  const std::set<std::string>& m_given;
  std::map<std::string, std::size_t> m_makers;  // of tensors
  std::vector<int> m_levels;                    // number of changes between ops and other nodes on the way
  std::vector<bool> m_isComputed;
  std::map<std::size_t, std::vector<std::size_t>> m_readers;
  std::vector<std::size_t> m_roots;  // parts of one region have one
  std::set<std::size_t> m_dropped;   // roots
};

}  // namespace

std::vector<Region> regionsOf(const std::vector<GraphPart>& parts, const std::set<std::string>& given) {
  return RegionSearch(parts, given).run();
}

}  // namespace fuseline
