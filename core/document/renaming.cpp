// Places in the recipe and in the fusion section are texts: "fc1", "layer1.mlp.fc1", "ForwardAddNorm@layer1.add".
// SPDX-License-Identifier: Apache-2.0
#include "core/document/renaming.h"

#include <optional>

namespace fuseline {

namespace {

/// The op itself, a part of it, or what is inside an instance.
std::optional<std::string> movedPlace(const std::string& place, const std::string& id, const std::string& newId) {
  if (place != id && !place.starts_with(id + '.')) return std::nullopt;
  return newId + place.substr(id.size());
}

void follow(Json& place, std::size_t prefix, const std::string& id, const std::string& newId) {
  const std::string text = place.get<std::string>();
  if (const auto moved = movedPlace(text.substr(prefix), id, newId)) place = text.substr(0, prefix) + *moved;
}

Json movedRecipe(Json recipe, const std::string& id, const std::string& newId) {
  if (!recipe.is_object() || !recipe.contains("overrides") || !recipe["overrides"].is_array()) return recipe;
  for (Json& special : recipe["overrides"])
    if (special.is_object() && special.contains("op") && special["op"].is_string()) follow(special["op"], 0, id, newId);
  return recipe;
}

Json movedFusion(Json fusion, const std::string& id, const std::string& newId) {
  if (!fusion.is_object()) return fusion;
  for (const char* key : {"without", "with"}) {
    if (!fusion.contains(key) || !fusion[key].is_array()) continue;
    for (Json& entry : fusion[key]) {
      const std::size_t at = entry.is_string() ? entry.get<std::string>().find('@') : std::string::npos;
      if (at != std::string::npos) follow(entry, at + 1, id, newId);
    }
  }
  return fusion;
}

Edit renameOp(const PipelineDocument& document, const std::string& id, const std::string& newId) {
  const RenameOp rename{.id = id, .newId = newId};
  EditGroup group{.label = describe(rename), .edits = {rename}};
  if (Json recipe = movedRecipe(document.recipe(), id, newId); recipe != document.recipe())
    group.edits.emplace_back(SetRecipe{std::move(recipe)});
  if (Json fusion = movedFusion(document.fusion(), id, newId); fusion != document.fusion())
    group.edits.emplace_back(SetFusion{std::move(fusion)});
  return group.edits.size() == 1 ? Edit(rename) : Edit(std::move(group));
}

}  // namespace

Edit renameNode(const PipelineDocument& document, const std::string& id, const std::string& newId) {
  if (const DocumentInput* input = document.findInput(id)) {
    DocumentInput renamed = *input;
    renamed.id = newId;
    return ReplaceInput{.id = id, .input = std::move(renamed)};
  }
  if (const DocumentOutput* output = document.findOutput(id)) {
    DocumentOutput renamed = *output;
    renamed.id = newId;
    return ReplaceOutput{.id = id, .output = std::move(renamed)};
  }
  return renameOp(document, id, newId);
}

}  // namespace fuseline
