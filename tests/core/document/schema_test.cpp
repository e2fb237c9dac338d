// The JSON Schema says what the op library says.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/ops/catalog.h"

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
  const Json schema = pipelineSchema();
  return (*conditionOf(schema, operation))["then"]["properties"]["attributes"]["properties"][name];
}

TEST(Schema, DescribesEveryAttributeOfEveryOp) {
  const Json schema = pipelineSchema();
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

TEST(Schema, SaysWhatANameIs) {
  EXPECT_EQ(attributeOf("Linear", "userbuffers_comm_name")["anyOf"][0]["pattern"], "^[A-Za-z_][A-Za-z0-9_]*$");
}

TEST(Schema, DescribesTheAttributeOfInstances) {
  const Json schema = pipelineSchema();
  for (const Json& condition : schema["$defs"]["op"]["allOf"]) {
    if (!condition["if"]["properties"]["op"].contains("pattern")) continue;
    const Json& sequential = condition["then"]["properties"]["attributes"]["properties"]["sequential"];
    EXPECT_EQ(sequential["default"], Json(false));
    EXPECT_FALSE(sequential["description"].get<std::string>().empty());
    return;
  }
  FAIL() << "there is no condition for instances of blocks";
}

TEST(Schema, AllowsUnknownFields) {
  EXPECT_EQ(pipelineSchema().dump().find("\"additionalProperties\":false"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
