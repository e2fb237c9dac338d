// FewIds: a few ids that are looked for among very many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace fuseline::ui {

class FewIds {
 public:
  explicit FewIds(std::set<std::string> ids) : m_ids(std::move(ids)) {
    for (const std::string& id : m_ids) m_isAny[keyOf(id)] = true;
  }

  const std::set<std::string>& all() const { return m_ids; }
  bool contains(const std::string& id) const { return m_isAny[keyOf(id)] && m_ids.contains(id); }

 private:
  static constexpr std::size_t kNumKeys = 4096;
  /// Names with numbers differ in their middle or at their end.
  static std::size_t keyOf(const std::string& id) {
    if (id.empty()) return 0;
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(id[i])); };
    return (id.size() + at(id.size() - 1) * 7 + at(id.size() / 2) * 61 + at(1 % id.size()) * 13) % kNumKeys;
  }

  std::set<std::string> m_ids;
  std::array<bool, kNumKeys> m_isAny = {};
};

}  // namespace fuseline::ui
