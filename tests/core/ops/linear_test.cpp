// Linear and its parts, and how parameters start.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "core/ops/initialise.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

Attributes linearAttributes(bool hasBias) {
  Attributes attributes;
  attributes.set("in_features", std::int64_t{64});
  attributes.set("out_features", std::int64_t{32});
  attributes.set("bias", hasBias);
  attributes.set("dtype", std::string("bf16"));
  attributes.set("tensor_parallel_mode", std::string("column"));
  attributes.set("sequence_parallel", true);
  return attributes;
}

std::vector<ExpandedOperation> expanded(bool hasBias) {
  return builtinOperations().find("Linear")->expand(linearAttributes(hasBias));
}

TEST(Linear, IsABasicLinearAndABias) {
  const auto parts = expanded(true);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].operation, "BasicLinear");
  EXPECT_EQ(parts[0].suffix, "linear");
  EXPECT_EQ(parts[1].operation, "Bias");
  EXPECT_EQ(parts[1].suffix, "bias");
}

TEST(Linear, WithoutBiasIsABasicLinear) {
  const auto parts = expanded(false);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].operation, "BasicLinear");
}

TEST(Linear, PassesItsAttributesOn) {
  const auto parts = expanded(true);
  EXPECT_EQ(parts[0].attributes.integer("in_features"), 64);
  EXPECT_EQ(parts[0].attributes.integer("out_features"), 32);
  EXPECT_EQ(parts[0].attributes.text("dtype"), "bf16");
  EXPECT_EQ(parts[0].attributes.text("tensor_parallel_mode"), "column");
  EXPECT_TRUE(parts[0].attributes.boolean("sequence_parallel"));
  EXPECT_EQ(parts[1].attributes.integer("size"), 32);
  EXPECT_EQ(parts[1].attributes.text("dtype"), "bf16");
  EXPECT_TRUE(parts[1].attributes.boolean("tensor_parallel"));
}

TEST(Linear, PassesTheNameOfItsCommunicatorsOn) {
  for (const char* mode : {"none", "column", "row"}) {
    Attributes attributes = linearAttributes(true);
    attributes.set("tensor_parallel_mode", std::string(mode));
    EXPECT_FALSE(builtinOperations().find("Linear")->expand(attributes)[0].attributes.has("userbuffers_comm_name"));
    attributes.set("userbuffers_comm_name", std::string("qkv"));
    const auto parts = builtinOperations().find("Linear")->expand(attributes);
    EXPECT_EQ(parts[0].attributes.text("userbuffers_comm_name"), "qkv") << mode;
    EXPECT_FALSE(parts[1].attributes.has("userbuffers_comm_name")) << mode;
  }
}

TEST(Linear, NotesThatOneRankHasNothingToOverlap) {
  const FusibleOperation& linear = *builtinOperations().find("BasicLinear");
  Attributes attributes = defaultAttributes(linear);
  EXPECT_EQ(linear.noteFor(attributes), "");
  attributes.set("userbuffers_comm_name", std::string("fc1"));
  EXPECT_EQ(linear.noteFor(attributes), "runs without Userbuffers overlap");
}

// The programs that list which ops a Linear has know no sizes.
TEST(Linear, ExpandsWithoutSizes) {
  Attributes attributes;
  for (const AttributeSpec& spec : builtinOperations().find("Linear")->attributes)
    attributes.set(spec.name, spec.defaultValue);
  EXPECT_EQ(builtinOperations().find("Linear")->expand(attributes).size(), 2u);
}

TEST(Linear, LeavesAnUnsetDtypeUnset) {
  Attributes attributes = linearAttributes(true);
  attributes.set("dtype", {});
  for (const ExpandedOperation& part : builtinOperations().find("Linear")->expand(attributes))
    EXPECT_FALSE(part.attributes.has("dtype")) << part.operation;
}

std::vector<double> initialValues(const char* name, const Attributes& attributes, int slot, Shape shape) {
  const FusibleOperation& op = *builtinOperations().find(name);
  return initialParameter(op, attributes, slot, {.dtype = DType::F32, .shape = std::move(shape)}, 1234, "fc1.weight")
      .toDoubles();
}

// Kaiming uniform with a = sqrt(5): a bound of 1/sqrt(K), and a variance of bound^2 / 3.
TEST(InitialParameter, OfALinearIsUniformWithinOneOverTheRootOfK) {
  const std::vector<double> weight = initialValues("BasicLinear", linearAttributes(true), 0, {256, 64});
  const auto [least, greatest] = std::ranges::minmax(weight);
  EXPECT_GE(least, -0.125);
  EXPECT_LE(greatest, 0.125);
  double variance = 0.0;
  for (const double value : weight) variance += value * value / static_cast<double>(weight.size());
  EXPECT_NEAR(variance, 0.125 * 0.125 / 3.0, 0.03 * 0.125 * 0.125 / 3.0);  // four standard errors
}

TEST(InitialParameter, OfABiasIsZero) { EXPECT_EQ(initialValues("Bias", {}, 0, {3}), (std::vector<double>(3, 0.0))); }

TEST(InitialParameter, OfANormIsOneOrZeroCentred) {
  Attributes attributes;
  attributes.set("zero_centered_gamma", false);
  EXPECT_EQ(initialValues("LayerNorm", attributes, 0, {3}), (std::vector<double>(3, 1.0)));
  EXPECT_EQ(initialValues("LayerNorm", attributes, 1, {3}), (std::vector<double>(3, 0.0)));
  attributes.set("zero_centered_gamma", true);
  EXPECT_EQ(initialValues("RMSNorm", attributes, 0, {3}), (std::vector<double>(3, 0.0)));
}

}  // namespace
}  // namespace fuseline
