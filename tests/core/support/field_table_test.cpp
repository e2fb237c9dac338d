// A struct's JSON, its reader and its schema from one table.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/field_table.h"

#include <gtest/gtest.h>

namespace fuseline {

enum class Shade { Light, Dark };
template <>
struct EnumNames<Shade> {
  static constexpr std::array kNames = {std::pair(Shade::Light, "light"), std::pair(Shade::Dark, "dark")};
};

struct Leaf {
  double size = 0.0;
  bool operator==(const Leaf&) const = default;
};

struct Branch {
  std::string name;
  Shade shade = Shade::Light;
  std::optional<Shade> other;
  std::vector<Leaf> leaves;
  std::optional<Leaf> largest;
  std::vector<std::pair<std::string, std::int64_t>> counts;
  double age = 1.0;
  bool operator==(const Branch&) const = default;
};

static const FieldTable<Leaf>& fieldsOf(const Leaf*) {
  static const FieldTable<Leaf> table({field("size", &Leaf::size, "In mm.")});
  return table;
}

static const FieldTable<Branch>& fieldsOf(const Branch*) {
  static const FieldTable<Branch> table(
      {field("name", &Branch::name).oneOf({"left", "right"}), field("shade", &Branch::shade),
       newField("other", &Branch::other), field("leaves", &Branch::leaves), newField("largest", &Branch::largest),
       field("counts", &Branch::counts), numberOrNull("age", &Branch::age, -1.0, "In years."),
       derived<Branch>(
           "numLeaves", [](const Branch& branch) { return branch.leaves.size(); }, "How many.")},
      [](JsonFields& fields, const Branch& branch) {
        if (branch.leaves.empty()) fields.refuse("leaves", "expected one.");
      });
  return table;
}

namespace {

const FieldTable<Branch>& table() { return fieldsOf(static_cast<const Branch*>(nullptr)); }

Branch sample() {
  return {.name = "left",
          .shade = Shade::Dark,
          .other = {},
          .leaves = {{1.5}, {2.5}},
          .largest = Leaf{2.5},
          .counts = {{"a", 1}, {"b", -2}},
          .age = 3.0};
}

std::string refusal(const Json& json) {
  const Result<Branch> read = table().from(json, "/branch");
  return read ? "" : read.error().message;
}

TEST(FieldTable, WritesTheFieldsInTheirOrder) {
  EXPECT_EQ(table().toJson(sample()).dump(),
            R"({"name":"left","shade":"dark","other":"","leaves":[{"size":1.5},{"size":2.5}],"largest":{"size":2.5},)"
            R"("counts":{"a":1,"b":-2},"age":3.0,"numLeaves":2})");
}

TEST(FieldTable, ReadsWhatItWrites) {
  EXPECT_EQ(*table().from(table().toJson(sample())), sample());
  Branch other = sample();
  other.other = Shade::Light;
  other.largest.reset();
  EXPECT_EQ(*table().from(table().toJson(other)), other);
}

TEST(FieldTable, ReadsANullNumberAsTheGivenOne) {
  Branch branch = sample();
  branch.age = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(table().toJson(branch)["age"].is_null());
  EXPECT_EQ(table().from(table().toJson(branch))->age, -1.0);
}

TEST(FieldTable, SaysWhereWhatIsWrong) {
  Json json = table().toJson(sample());
  json.erase("other");
  json.erase("largest");
  json.erase("numLeaves");
  EXPECT_EQ(refusal(json), "") << "older programs did not write the first two, and nobody reads the last";
  json["shade"] = "grey";
  EXPECT_EQ(refusal(json), "/branch/shade: expected one of light, dark, found \"grey\".");
  json["shade"] = "light";
  json["leaves"][1]["size"] = "x";
  EXPECT_EQ(refusal(json), "/branch/leaves/1/size: expected a number, found \"x\".");
  json["leaves"] = Json::array();
  EXPECT_EQ(refusal(json), "/branch/leaves: expected one.");
  json.erase("counts");
  EXPECT_EQ(refusal(json), "/branch/counts: this field is missing.");
}

TEST(FieldTable, DescribesEveryField) {
  const Json schema = table().schema();
  EXPECT_EQ(schema["required"].size(), 8U);
  EXPECT_EQ(schema["additionalProperties"], false);
  const Json& fields = schema["properties"];
  EXPECT_EQ(fields["name"]["enum"], Json::array({"left", "right"}));
  EXPECT_EQ(fields["shade"]["enum"], Json::array({"light", "dark"}));
  EXPECT_EQ(fields["leaves"]["items"]["properties"]["size"]["description"], "In mm.");
  EXPECT_EQ(fields["largest"]["type"], Json::array({"object", "null"}));
  EXPECT_EQ(fields["counts"]["additionalProperties"]["type"], "integer");
  EXPECT_EQ(fields["age"]["type"], Json::array({"number", "null"}));
  EXPECT_EQ(fields["numLeaves"]["type"], "integer");
}

}  // namespace
}  // namespace fuseline
