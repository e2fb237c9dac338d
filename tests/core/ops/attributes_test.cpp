// Attribute values by name.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attributes.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(Attributes, HoldTheLastValueOfAName) {
  Attributes attributes;
  attributes.set("size", std::int64_t{3});
  attributes.set("size", std::int64_t{4});
  EXPECT_EQ(attributes.integer("size"), 4);
  EXPECT_EQ(std::distance(attributes.begin(), attributes.end()), 1);
}

TEST(Attributes, KnowWhatIsNotSet) {
  Attributes attributes;
  attributes.set("dtype", {});
  EXPECT_FALSE(attributes.has("dtype"));
  EXPECT_FALSE(attributes.has("eps"));
  attributes.set("eps", 0.5);
  EXPECT_TRUE(attributes.has("eps"));
}

TEST(Attributes, GiveAnIntegerAsANumber) {
  Attributes attributes;
  attributes.set("scale", std::int64_t{-2});
  EXPECT_EQ(attributes.real("scale"), -2.0);
}

TEST(AttributeValue, PrintsAsAUserWouldWriteIt) {
  EXPECT_EQ(toString(AttributeValue{}), "");
  EXPECT_EQ(toString(AttributeValue{true}), "true");
  EXPECT_EQ(toString(AttributeValue{std::int64_t{1024}}), "1024");
  EXPECT_EQ(toString(AttributeValue{1e-5}), "1e-05");
  EXPECT_EQ(toString(AttributeValue{std::string("bf16")}), "bf16");
  EXPECT_EQ(toString(AttributeValue{std::vector<std::int64_t>{512, 1024}}), "[512, 1024]");
}

TEST(AttributeSpec, IsRequiredWithoutADefaultUnlessOptional) {
  EXPECT_TRUE((AttributeSpec{.name = "size"}.isRequired()));
  EXPECT_FALSE((AttributeSpec{.name = "dtype", .optional = true}.isRequired()));
  EXPECT_FALSE((AttributeSpec{.name = "eps", .defaultValue = 1e-5}.isRequired()));
}

}  // namespace
}  // namespace fuseline
