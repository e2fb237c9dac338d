// A map in a sorted vector: for few entries that are mostly looked up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace fuseline {

/// By ascending key. A node of a tree for every entry costs more than moving a few.
template <class Key, class Value>
class SortedMap {
 public:
  void set(const Key& key, Value value) {
    const auto place = std::ranges::lower_bound(m_entries, key, {}, &Entry::first);
    if (place != m_entries.end() && place->first == key) {
      place->second = std::move(value);
      return;
    }
    const auto index = place - m_entries.begin();
    if (m_entries.empty()) m_entries.reserve(kUsual);
    m_entries.emplace(m_entries.begin() + index, key, std::move(value));
  }

  /// nullptr when there is none.
  const Value* find(const Key& key) const {
    const auto place = std::ranges::lower_bound(m_entries, key, {}, &Entry::first);
    return place != m_entries.end() && place->first == key ? &place->second : nullptr;
  }

 private:
  using Entry = std::pair<Key, Value>;
  static constexpr std::size_t kUsual = 8;  // entries; asking for memory at every second one costs more
  std::vector<Entry> m_entries;
};

}  // namespace fuseline
