// A map in a sorted vector: for entries that are mostly few and mostly looked up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace fuseline {

/// By ascending key. A node of a tree for every entry costs more than moving a few; where there are many, each gets
/// one.
template <class Key, class Value>
class SortedMap {
 public:
  void set(const Key& key, Value value) {
    if (!m_many.empty()) return void(m_many.insert_or_assign(key, std::move(value)));
    const auto place = std::ranges::lower_bound(m_few, key, {}, &Entry::first);
    if (place != m_few.end() && place->first == key) {
      place->second = std::move(value);
      return;
    }
    const auto index = place - m_few.begin();
    if (m_few.empty()) m_few.reserve(kUsual);
    m_few.emplace(m_few.begin() + index, key, std::move(value));
    if (m_few.size() > kFew) growMany();
  }

  /// nullptr when there is none.
  const Value* find(const Key& key) const {
    if (!m_many.empty()) {
      const auto place = m_many.find(key);
      return place != m_many.end() ? &place->second : nullptr;
    }
    const auto place = std::ranges::lower_bound(m_few, key, {}, &Entry::first);
    return place != m_few.end() && place->first == key ? &place->second : nullptr;
  }

 private:
  using Entry = std::pair<Key, Value>;
  static constexpr std::size_t kUsual = 8;  // entries; asking for memory at every second one costs more
  static constexpr std::size_t kFew = 64;   // entries that move for one

  void growMany() {
    m_many.insert(std::make_move_iterator(m_few.begin()), std::make_move_iterator(m_few.end()));
    m_few = {};
  }

  std::vector<Entry> m_few;  // sorted; empty where there are many
  std::map<Key, Value> m_many;
};

}  // namespace fuseline
