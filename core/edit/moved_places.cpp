// Places are texts: "fc1", "layer1.mlp.fc1", "ForwardAddNorm@layer1.add".
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/moved_places.h"

#include "core/document/block_operation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fuseline {

namespace {

/// The entry with each of the places in place of its own.
std::vector<std::string> followed(const std::string& text, std::size_t prefix, const MovedPlaces& moved) {
  std::optional<std::vector<std::string>> places = moved(text.substr(prefix));
  if (!places) return {text};
  for (std::string& place : *places) place.insert(0, text.substr(0, prefix));
  return *std::move(places);
}

Json movedRecipe(Json recipe, const MovedPlaces& moved) {
  if (!recipe.is_object() || !recipe.contains("overrides") || !recipe["overrides"].is_array()) return recipe;
  Json overrides = Json::array();
  for (const Json& special : recipe["overrides"]) {
    if (!special.is_object() || !special.contains("op") || !special["op"].is_string()) {
      overrides.push_back(special);
      continue;
    }
    for (std::string& place : followed(special["op"].get<std::string>(), 0, moved)) {
      overrides.push_back(special);
      overrides.back()["op"] = std::move(place);
    }
  }
  recipe["overrides"] = std::move(overrides);
  return recipe;
}

Json movedSwitches(const Json& entries, const MovedPlaces& moved) {
  Json next = Json::array();
  for (const Json& entry : entries) {
    const std::string text = entry.is_string() ? entry.get<std::string>() : std::string();
    const std::size_t at = text.find('@');
    if (at == std::string::npos) {
      next.push_back(entry);
      continue;
    }
    for (std::string& each : followed(text, at + 1, moved)) next.push_back(std::move(each));
  }
  return next;
}

Json movedFusion(Json fusion, const MovedPlaces& moved) {
  if (!fusion.is_object()) return fusion;
  for (const char* key : {"without", "with"})
    if (fusion.contains(key) && fusion[key].is_array()) fusion[key] = movedSwitches(fusion[key], moved);
  return fusion;
}

MovedPlaces throughInstances(const PipelineDocument& document, const std::string& block, const MovedPlaces& moved) {
  return [&document, block, moved](const std::string& place) -> std::optional<std::vector<std::string>> {
    const DocumentBlock* around = &document.pipeline();
    for (std::size_t at = 0; at < place.size();) {
      const std::size_t end = std::min(place.find('.', at), place.size());
      const auto op = std::ranges::find(around->ops, place.substr(at, end - at), &DocumentOp::id);
      const std::string_view name = op == around->ops.end() ? std::string_view() : blockNameOf(*op);
      around = document.findBlock(name);
      at = end + 1;
      if (!around || at > place.size()) break;
      if (name != block) continue;
      auto places = moved(place.substr(at));
      if (!places) break;
      for (std::string& each : *places) each.insert(0, place, 0, at);
      return places;
    }
    return std::nullopt;
  };
}

}  // namespace

PlaceMoves movesOf(MovedPlace moved) {
  const MovedPlaces one = [moved = std::move(moved)](const std::string& place) {
    const std::optional<std::string> next = moved(place);
    return next ? std::optional(std::vector{*next}) : std::nullopt;
  };
  return {one, one};
}

PlaceMoves movesOf(std::map<std::string, std::string> places) {
  return movesOf([places = std::move(places)](const std::string& place) -> std::optional<std::string> {
    const std::size_t end = std::min(place.find('.'), place.size());
    const auto op = places.find(place.substr(0, end));
    return op == places.end() ? std::nullopt : std::optional(op->second + place.substr(end));
  });
}

PlaceMoves insideOf(const PipelineDocument& document, const std::string& block, const PlaceMoves& moves) {
  return {throughInstances(document, block, moves.ofRecipe), throughInstances(document, block, moves.ofSwitches)};
}

Json recipeWithoutPlaces(const Json& recipe) {
  return movedRecipe(recipe, [](const std::string&) { return std::optional(std::vector<std::string>()); });
}

void addMovedPlaces(std::vector<Edit>& edits, const PipelineDocument& document, const PlaceMoves& moves) {
  if (Json recipe = movedRecipe(document.recipe(), moves.ofRecipe); recipe != document.recipe())
    edits.emplace_back(SetRecipe{std::move(recipe)});
  if (Json fusion = movedFusion(document.fusion(), moves.ofSwitches); fusion != document.fusion())
    edits.emplace_back(SetFusion{std::move(fusion)});
}

}  // namespace fuseline
