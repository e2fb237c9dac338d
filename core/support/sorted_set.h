// A set in one piece of memory: for small sets, and for large ones that grow in ascending order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline {

/// Ascending, each item once. A node of a tree for every item costs more than moving a few.
template <class T>
class SortedSet {
 public:
  void insert(T item) {
    const auto place = std::ranges::lower_bound(m_items, item);
    if (place == m_items.end() || *place != item) m_items.insert(place, std::move(item));
  }
  bool contains(const T& item) const { return std::ranges::binary_search(m_items, item); }

  auto begin() const { return m_items.begin(); }
  auto end() const { return m_items.end(); }

 private:
  std::vector<T> m_items;
};

}  // namespace fuseline
