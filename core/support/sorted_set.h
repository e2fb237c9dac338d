// A set in one piece of memory: for small sets, and for large ones that grow in ascending order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace fuseline {

/// Ascending, each item once. A node of a tree for every item costs more than moving a few.
template <class T>
class SortedSet {
 public:
  void insert(T item) {
    const auto place = std::ranges::lower_bound(m_items, item);
    if (place != m_items.end() && *place == item) return;
    const auto index = place - m_items.begin();
    if (m_items.empty()) m_items.reserve(kUsual);
    m_items.insert(m_items.begin() + index, std::move(item));
  }
  bool contains(const T& item) const { return std::ranges::binary_search(m_items, item); }

  auto begin() const { return m_items.begin(); }
  auto end() const { return m_items.end(); }

 private:
  static constexpr std::size_t kUsual = 8;  // items; asking for memory at every second one costs more
  std::vector<T> m_items;
};

}  // namespace fuseline
