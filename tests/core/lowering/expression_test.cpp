// Integer expressions: values computed by hand, errors with their place.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/expression.h"

#include "core/lowering/lowering.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

const std::map<std::string, std::int64_t> kSymbols = {{"H", 1024}, {"F", 2816}, {"zero", 0}};

std::int64_t valueOf(std::string_view text) {
  const Result<std::int64_t> value = evaluateExpression(text, kSymbols);
  EXPECT_TRUE(value) << text;
  return value ? *value : -1;
}

std::string errorOf(std::string_view text) {
  const Result<std::int64_t> value = evaluateExpression(text, kSymbols);
  return value ? "no error" : value.error().message;
}

TEST(Expression, FollowsThePrecedenceOfArithmetic) {
  EXPECT_EQ(valueOf("2 + 3 * 4"), 14);
  EXPECT_EQ(valueOf("(2 + 3) * 4"), 20);
  EXPECT_EQ(valueOf("20 - 5 - 3"), 12);
  EXPECT_EQ(valueOf("100 / 5 / 2"), 10);
  EXPECT_EQ(valueOf("-3 * -(2 - 4)"), -6);
  EXPECT_EQ(valueOf(" 2*F "), 5632);
  EXPECT_EQ(valueOf("(H + F) / 64"), 60);
}

TEST(Expression, ReachesTheEndsOf64Bits) {
  EXPECT_EQ(valueOf("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(valueOf("-9223372036854775807 - 1"), INT64_MIN);
}

TEST(Expression, ReportsOverflow) {
  EXPECT_EQ(errorOf("9223372036854775808"),
            "In \"9223372036854775808\", column 1: 9223372036854775808 does not fit into 64 bits.");
  EXPECT_EQ(errorOf("9223372036854775807 + 1"),
            "In \"9223372036854775807 + 1\", column 21: 9223372036854775807 + 1 does not fit into 64 bits.");
  EXPECT_NE(errorOf("4294967296 * 4294967296").find("does not fit into 64 bits"), std::string::npos);
  EXPECT_NE(errorOf("(-9223372036854775807 - 1) / -1").find("does not fit into 64 bits"), std::string::npos);
  EXPECT_NE(errorOf("-(-9223372036854775807 - 1)").find("does not fit into 64 bits"), std::string::npos);
}

TEST(Expression, RefusesDivisionsThatAreNotExact) {
  EXPECT_EQ(errorOf("7 / 2"), "In \"7 / 2\", column 3: 7 / 2 is not a whole number; the remainder is 1.");
  EXPECT_EQ(errorOf("H / zero"), "In \"H / zero\", column 3: 1024 is divided by zero.");
}

TEST(Expression, NamesTheNearestSymbol) {
  EXPECT_EQ(errorOf("2 * zeros"), "In \"2 * zeros\", column 5: there is no symbol zeros; did you mean zero?");
}

TEST(Expression, NamesTheExpectedToken) {
  EXPECT_EQ(errorOf(""), "In \"\", column 1: expected a number, a symbol or \"(\", found the end.");
  EXPECT_EQ(errorOf("2 *"), "In \"2 *\", column 4: expected a number, a symbol or \"(\", found the end.");
  EXPECT_EQ(errorOf("2 H"), "In \"2 H\", column 3: expected an operator, found \"H\".");
  EXPECT_EQ(errorOf("(2"), "In \"(2\", column 3: expected \")\", found the end.");
  EXPECT_EQ(errorOf("2 ^ 3"), "In \"2 ^ 3\", column 3: expected an operator, found \"^ 3\".");
  EXPECT_EQ(errorOf("1.5"), "In \"1.5\", column 2: expected an operator, found \".5\".");
}

TEST(Expression, BoundsItsNesting) {
  EXPECT_NE(errorOf(std::string(100000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(errorOf(std::string(100000, '-')).find("nested too deeply"), std::string::npos);
}

TEST(TypedExpression, WritesShortNumbersOut) {
  EXPECT_EQ(typedExpression("4k", ""), "4096");
  EXPECT_EQ(typedExpression("2^14", ""), "16384");
  EXPECT_EQ(typedExpression("M, 2^3*H, 8K", ""), "M, 8*H, 8192");
  EXPECT_EQ(typedExpression("2^0", ""), "1");
  EXPECT_EQ(typedExpression("0^3", ""), "0");
}

TEST(TypedExpression, KeepsUnknownText) {
  for (const char* text : {"H2k", "k", "4kg", "2^", "2^H", "2^70", "9223372036854775807k", "99999999999999999999",
                           "H^2", "a b", "-1", "1e-5"})
    EXPECT_EQ(typedExpression(text, ""), text);
}

TEST(TypedExpression, ContinuesFromTheFormerValue) {
  EXPECT_EQ(typedExpression("*2", "4096"), "8192");
  EXPECT_EQ(typedExpression("/4", "4096"), "1024");
  EXPECT_EQ(typedExpression("+1k", "1"), "1025");
  EXPECT_EQ(typedExpression("*2", "H"), "H*2");
  EXPECT_EQ(typedExpression("*2", "H + F"), "(H + F)*2");
  EXPECT_EQ(typedExpression("/3", "4096"), "4096/3");  // reported as not a whole number
  EXPECT_EQ(typedExpression("*2", ""), "*2");
  EXPECT_EQ(typedExpression("-2", "4096"), "-2");  // a separate number
}

TEST(TypedExpression, OfAnExpressionIsWorthTheSame) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789kKHF*+-/() ^,")));
    const Result<std::int64_t> before = evaluateExpression(text, kSymbols);
    if (before) RC_ASSERT(*evaluateExpression(typedExpression(text, ""), kSymbols) == *before);
  }));
}

/// Equals the former text in brackets, followed by the rest.
TEST(TypedExpression, GoesOnAsArithmeticDoes) {
  EXPECT_TRUE(rc::check([] {
    const auto before = *rc::gen::elementOf(std::vector<std::string>{"12", "H", "H+F", "F-H", "2*H", "H/2"});
    const auto number = *rc::gen::inRange<std::int64_t>(1, 1000);
    const auto typed = [&](char sign) { return valueOf(typedExpression(sign + std::to_string(number), before)); };
    RC_ASSERT(typed('*') == valueOf(before) * number);
    RC_ASSERT(typed('+') == valueOf(before) + number);
  }));
}

}  // namespace
}  // namespace fuseline
