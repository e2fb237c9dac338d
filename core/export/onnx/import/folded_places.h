// FoldedPlaces: where ops are that became parts of blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// The names of ops and of everything that belongs to them.
class FoldedPlaces {
 public:
  /// places: by the ids that ops had.
  explicit FoldedPlaces(std::map<std::string, std::string> places = {}) : m_places(std::move(places)) {}

  /// "layer2.fc.weight" for "fc7.weight".
  std::string of(const std::string& name) const {
    const std::size_t end = std::min(name.find('.'), name.size());
    const auto place = m_places.find(name.substr(0, end));
    return place == m_places.end() ? name : place->second + name.substr(end);
  }
  std::vector<std::string> of(std::vector<std::string> names) const {
    for (std::string& name : names) name = of(name);
    return names;
  }

 private:
  std::map<std::string, std::string> m_places;
};

}  // namespace fuseline
