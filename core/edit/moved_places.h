// Places of ops in the recipe's overrides and among the switches of fusions, where ops get other places. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// New place of an op, a part of an op, or the inside of an instance; nullopt if unchanged.
using MovedPlace = std::function<std::optional<std::string>(const std::string& place)>;
/// Maps a place to its new places; one place may become several.
using MovedPlaces = std::function<std::optional<std::vector<std::string>>(const std::string& place)>;

struct PlaceMoves {
  MovedPlaces ofRecipe;
  MovedPlaces ofSwitches;
};
/// The same move for both.
PlaceMoves movesOf(MovedPlace moved);
/// Moves of ops, by their ids, with their contents.
PlaceMoves movesOf(std::map<std::string, std::string> places);

/// Moves inside of a block, as they are for the whole document: of what leads through one of its instances. Refers to
/// the document.
PlaceMoves insideOf(const PipelineDocument& document, const std::string& block, const PlaceMoves& moves);

/// Without the overrides at an op, for where places mean something else.
Json recipeWithoutPlaces(const Json& recipe);

/// Adds the edits that let the recipe and the switches follow. An entry is repeated for each of its places.
void addMovedPlaces(std::vector<Edit>& edits, const PipelineDocument& document, const PlaceMoves& moves);

}  // namespace fuseline
