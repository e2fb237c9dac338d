// The JSON Schema agrees with the op library.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/ops/catalog.h"
#include "core/quant/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fuseline {
namespace {

const Json* conditionOf(const Json& schema, const std::string& operation) {
  for (const Json& condition : schema["$defs"]["op"]["allOf"])
    if (condition["if"]["properties"]["op"]["const"] == operation) return &condition;
  return nullptr;
}

Json attributeOf(const std::string& operation, const std::string& name) {
  const Json schema = pipelineSchema(recipeSchema());
  return (*conditionOf(schema, operation))["then"]["properties"]["attributes"]["properties"][name];
}

TEST(Schema, DescribesEveryAttributeOfEveryOp) {
  const Json schema = pipelineSchema(recipeSchema());
  for (const auto& operation : builtinOperations().operations()) {
    const Json* condition = conditionOf(schema, operation->name);
    ASSERT_TRUE(condition) << operation->name;
    const Json& attributes = (*condition)["then"]["properties"]["attributes"];
    EXPECT_EQ(attributes["properties"].size(), operation->attributes.size());
    for (const AttributeSpec& spec : operation->attributes) {
      ASSERT_TRUE(attributes["properties"].contains(spec.name)) << operation->name << "." << spec.name;
      const bool isListed = std::ranges::find(attributes["required"], Json(spec.name)) != attributes["required"].end();
      EXPECT_EQ(isListed, spec.isRequired()) << operation->name << "." << spec.name;
    }
  }
}

TEST(Schema, HasDefaultsRangesAndHelp) {
  const Json eps = attributeOf("RMSNorm", "eps");
  EXPECT_EQ(eps["default"], Json(1e-5));
  EXPECT_FALSE(eps["description"].get<std::string>().empty());
  const Json inFeatures = attributeOf("Linear", "in_features");
  EXPECT_EQ(inFeatures["anyOf"][0]["type"], "integer");
  EXPECT_EQ(inFeatures["anyOf"][0]["minimum"], 1);
}

TEST(Schema, DescribesNames) {
  EXPECT_EQ(attributeOf("Linear", "userbuffers_comm_name")["anyOf"][0]["pattern"], "^[A-Za-z_][A-Za-z0-9_]*$");
}

TEST(Schema, DescribesTheAttributeOfInstances) {
  const Json schema = pipelineSchema(recipeSchema());
  for (const Json& condition : schema["$defs"]["op"]["allOf"]) {
    if (!condition["if"]["properties"]["op"].contains("pattern")) continue;
    const Json& sequential = condition["then"]["properties"]["attributes"]["properties"]["sequential"];
    EXPECT_EQ(sequential["default"], Json(false));
    EXPECT_FALSE(sequential["description"].get<std::string>().empty());
    return;
  }
  FAIL() << "there is no condition for instances of blocks";
}

TEST(Schema, DescribesEveryFieldOfEveryRecipe) {
  const Json recipe = pipelineSchema(recipeSchema())["properties"]["recipe"];
  ASSERT_EQ(recipe["allOf"].size(), builtinRecipes().size());
  for (std::size_t i = 0; i < builtinRecipes().size(); ++i) {
    const RecipeDefinition& definition = builtinRecipes()[i];
    const Json& condition = recipe["allOf"][i];
    EXPECT_EQ(condition["if"]["properties"]["name"]["const"], definition.name);
    for (const AttributeSpec& field : definition.fields) {
      EXPECT_TRUE(condition["then"]["properties"].contains(field.name)) << field.name;
      const Json& nested = condition["then"]["properties"]["fields"]["properties"][field.name];
      EXPECT_EQ(nested["description"], field.help);
      if (!field.choices.empty()) {
        EXPECT_EQ(nested["enum"], Json(field.choices));
      }
    }
  }
}

TEST(Schema, AllowsUnknownFields) {
  EXPECT_EQ(pipelineSchema(recipeSchema()).dump().find("\"additionalProperties\":false"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
