// Walks the op library: every op has the texts that are shown to a user.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "tests/support/op_samples.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

bool isSentence(const std::string& text) { return text.size() > 1 && text.back() == '.'; }

class AnyOperation : public ::testing::TestWithParam<const FusibleOperation*> {
 protected:
  const FusibleOperation& operation() const { return *GetParam(); }
};

TEST_P(AnyOperation, DescribesItself) {
  EXPECT_FALSE(operation().category.empty());
  EXPECT_TRUE(isSentence(operation().summary)) << operation().summary;
  EXPECT_FALSE(operation().formula.empty());
  EXPECT_FALSE(operation().derivative.empty());
  EXPECT_FALSE(operation().source.empty());
  EXPECT_FALSE(operation().keywords.empty());
}

TEST_P(AnyOperation, DescribesItsTensorsWithShapes) {
  for (const auto* ports : {&operation().inputs, &operation().outputs, &operation().residuals})
    for (const Port& port : *ports) {
      EXPECT_TRUE(port.shape.starts_with('[') && port.shape.ends_with(']')) << port.name;
      EXPECT_TRUE(isSentence(port.help)) << port.name;
    }
  for (const ParameterSpec& parameter : operation().parameters) {
    EXPECT_TRUE(parameter.shape.starts_with('[') && parameter.shape.ends_with(']')) << parameter.name;
    EXPECT_TRUE(isSentence(parameter.help)) << parameter.name;
  }
}

std::string expectedName(const Port& port, const Port& main) {
  if (port.elements == PortElements::Counts) return "split_sizes";
  return port.shape == main.shape ? "extra" : "scales";
}

// A second tensor like the main one is called extra; one with another shape has a descriptive name. Structured ops have
// TransformerEngine's names, or numbers.
TEST_P(AnyOperation, CallsItsMainPortsXAndY) {
  EXPECT_EQ(operation().inputs.front().name, "x");
  EXPECT_EQ(operation().outputs.front().name, "y");
  if (operation().exampleCall) return;
  for (const auto* ports : {&operation().inputs, &operation().outputs})
    for (std::size_t i = 1; i < ports->size(); ++i)
      EXPECT_EQ((*ports)[i].name, expectedName((*ports)[i], ports->front()));
}

/// Does the value have the type that the attribute says?
bool hasType(const AttributeValue& value, AttributeType type) {
  switch (type) {
    case AttributeType::Boolean: return std::holds_alternative<bool>(value);
    case AttributeType::Integer: return std::holds_alternative<std::int64_t>(value);
    case AttributeType::Real: return std::holds_alternative<double>(value);
    case AttributeType::Text: return std::holds_alternative<std::string>(value);
    case AttributeType::IntegerList: return std::holds_alternative<std::vector<std::int64_t>>(value);
  }
  return false;
}

TEST_P(AnyOperation, DescribesItsAttributes) {
  std::set<std::string> names;
  for (const AttributeSpec& spec : operation().attributes) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_TRUE(isSentence(spec.help) || spec.help.ends_with(')')) << spec.name;
    const bool isUnset = std::holds_alternative<std::monostate>(spec.defaultValue);
    EXPECT_TRUE(isUnset || hasType(spec.defaultValue, spec.type)) << spec.name;
    if (spec.type == AttributeType::Text && !spec.choices.empty() && !isUnset) {
      EXPECT_NE(std::ranges::find(spec.choices, toString(spec.defaultValue)), spec.choices.end()) << spec.name;
    }
  }
}

TEST_P(AnyOperation, SaysHowItsParametersStart) {
  if (operation().isComposite()) return;
  for (const ParameterSpec& parameter : operation().parameters)
    EXPECT_TRUE(parameter.initialise) << parameter.name << " has no initialisation";
}

std::vector<const FusibleOperation*> allOperations() {
  std::vector<const FusibleOperation*> operations;
  for (const auto& operation : builtinOperations().operations()) operations.push_back(operation.get());
  return operations;
}

std::vector<const FusibleOperation*> composites() {
  std::vector<const FusibleOperation*> operations = allOperations();
  std::erase_if(operations, [](const FusibleOperation* operation) { return !operation->isComposite(); });
  return operations;
}

class Composites : public AnyOperation {
 protected:
  /// A part's definition; the part must be in the catalog.
  static const FusibleOperation& definition(const ExpandedOperation& part) {
    const FusibleOperation* found = builtinOperations().find(part.operation);
    EXPECT_NE(found, nullptr) << part.operation;
    return *found;
  }
};

TEST_P(Composites, ExpandToBasicOpsWithAttributesThatTheseHave) {
  for (const ExpandedOperation& part : operation().expand(fittingAttributes(operation(), {6}))) {
    EXPECT_FALSE(definition(part).isComposite());
    for (const auto& [name, value] : part.attributes) {
      const AttributeSpec* spec = definition(part).attribute(name);
      ASSERT_NE(spec, nullptr) << part.operation << "." << name;
      EXPECT_TRUE(hasType(value, spec->type)) << part.operation << "." << name;
    }
    for (const AttributeSpec& spec : definition(part).attributes)
      EXPECT_TRUE(!spec.isRequired() || part.attributes.has(spec.name)) << part.operation << "." << spec.name;
  }
}

TEST_P(Composites, DeclareTheParametersOfTheirParts) {
  std::set<std::string> declared;
  for (const ParameterSpec& parameter : operation().parameters) declared.insert(parameter.name);
  std::set<std::string> ofParts;
  for (const ExpandedOperation& part : operation().expand(fittingAttributes(operation(), {6})))
    for (const ParameterSpec& parameter : definition(part).parameters) ofParts.insert(parameter.name);
  EXPECT_EQ(declared, ofParts);
}

INSTANTIATE_TEST_SUITE_P(Catalog, AnyOperation, ::testing::ValuesIn(allOperations()), operationName);
INSTANTIATE_TEST_SUITE_P(Catalog, Composites, ::testing::ValuesIn(composites()), operationName);

}  // namespace
}  // namespace fuseline::testing
