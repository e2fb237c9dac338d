// Places are texts: "fc1", "layer1.mlp.fc1", "ForwardAddNorm@layer1.add".
// SPDX-License-Identifier: Apache-2.0
#include "core/document/moved_places.h"

#include <utility>

namespace fuseline {

namespace {

void follow(Json& place, std::size_t prefix, const MovedPlace& moved) {
  const std::string text = place.get<std::string>();
  if (const auto next = moved(text.substr(prefix))) place = text.substr(0, prefix) + *next;
}

Json movedRecipe(Json recipe, const MovedPlace& moved) {
  if (!recipe.is_object() || !recipe.contains("overrides") || !recipe["overrides"].is_array()) return recipe;
  for (Json& special : recipe["overrides"])
    if (special.is_object() && special.contains("op") && special["op"].is_string()) follow(special["op"], 0, moved);
  return recipe;
}

Json movedFusion(Json fusion, const MovedPlace& moved) {
  if (!fusion.is_object()) return fusion;
  for (const char* key : {"without", "with"}) {
    if (!fusion.contains(key) || !fusion[key].is_array()) continue;
    for (Json& entry : fusion[key]) {
      const std::size_t at = entry.is_string() ? entry.get<std::string>().find('@') : std::string::npos;
      if (at != std::string::npos) follow(entry, at + 1, moved);
    }
  }
  return fusion;
}

}  // namespace

void addMovedPlaces(std::vector<Edit>& edits, const PipelineDocument& document, const MovedPlace& moved) {
  if (Json recipe = movedRecipe(document.recipe(), moved); recipe != document.recipe())
    edits.emplace_back(SetRecipe{std::move(recipe)});
  if (Json fusion = movedFusion(document.fusion(), moved); fusion != document.fusion())
    edits.emplace_back(SetFusion{std::move(fusion)});
}

}  // namespace fuseline
