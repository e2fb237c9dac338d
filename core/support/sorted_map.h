// A map in a sorted vector: for few entries that are mostly looked up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline {

/// By ascending key. A node of a tree for every entry costs more than moving a few.
template <class Key, class Value>
class SortedMap {
 public:
  void set(const Key& key, Value value) {
    const auto place = std::ranges::lower_bound(m_entries, key, {}, &Entry::first);
    if (place != m_entries.end() && place->first == key)
      place->second = std::move(value);
    else
      m_entries.emplace(place, key, std::move(value));
  }

  /// nullptr when there is none.
  const Value* find(const Key& key) const {
    const auto place = std::ranges::lower_bound(m_entries, key, {}, &Entry::first);
    return place != m_entries.end() && place->first == key ? &place->second : nullptr;
  }

 private:
  using Entry = std::pair<Key, Value>;
  std::vector<Entry> m_entries;
};

}  // namespace fuseline
