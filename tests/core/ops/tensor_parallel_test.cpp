// Shapes on several ranks under column, row and sequence parallelism and the collectives.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/tensor_parallel.h"

#include "core/ops/catalog.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Given = std::vector<std::pair<std::string, AttributeValue>>;

Attributes attributesOn(const char* name, const Given& given) {
  Attributes attributes;
  for (const AttributeSpec& spec : builtinOperations().find(name)->attributes)
    attributes.set(spec.name, spec.defaultValue);
  for (const auto& [attribute, value] : given) attributes.set(attribute, value);
  return attributes;
}

Result<OperationSpecs> inferOn(std::int64_t ranks, const char* name, Shape x, const Given& given = {}) {
  const TensorSpec input{.dtype = DType::BF16, .shape = std::move(x)};
  return builtinOperations().find(name)->inferOnRanks(attributesOn(name, given), std::span(&input, 1), ranks);
}

/// The shape of y, or the sentence of the refusal in its place.
struct Answer {
  Shape y;
  Shape parameter;
  std::string refusal;
  bool operator==(const Answer&) const = default;
};

void PrintTo(const Answer& answer, std::ostream* out) {
  *out << toString(answer.y) << ", " << toString(answer.parameter) << ", " << answer.refusal;
}

Answer answerOn(std::int64_t ranks, const char* name, Shape x, const Given& given = {}) {
  const Result<OperationSpecs> specs = inferOn(ranks, name, std::move(x), given);
  if (!specs) return {.refusal = specs.error().message};
  return {.y = specs->outputs[0].shape, .parameter = specs->parameters.empty() ? Shape{} : specs->parameters[0].shape};
}

/// A BasicLinear of 12 to 8 features.
Given linearOf(const char* mode, bool isSequenceParallel) {
  return {{"in_features", std::int64_t{12}},
          {"out_features", std::int64_t{8}},
          {"tensor_parallel_mode", std::string(mode)},
          {"sequence_parallel", isSequenceParallel}};
}

TEST(Collectives, ChangeTheFirstAxisByTheNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 4}) {
    EXPECT_EQ(answerOn(ranks, "AllGather", {8, 5}).y, (Shape{8 * ranks, 5}));
    EXPECT_EQ(answerOn(ranks, "ReduceScatter", {8, 5}).y, (Shape{8 / ranks, 5}));
    EXPECT_EQ(answerOn(ranks, "AllReduce", {8, 5}).y, (Shape{8, 5}));
  }
}

TEST(Collectives, RefuseAFirstAxisThatRanksCannotShare) {
  EXPECT_EQ(
      answerOn(4, "ReduceScatter", {10, 8}).refusal,
      "ReduceScatter: the first axis of [10, 8] has 10 elements, which 4 ranks cannot share equally; it must be a "
      "multiple of 4.");
  for (const char* name : {"AllGather", "ReduceScatter"})
    EXPECT_EQ(answerOn(4, name, {}).refusal,
              std::string(name) + ": x is a scalar, but 4 ranks split its first axis; it needs at least one axis.");
  EXPECT_EQ(answerOn(4, "AllReduce", {}).refusal, "");
}

TEST(Collectives, AcceptAnythingOnOneRank) {
  for (const char* name : {"AllGather", "ReduceScatter", "AllReduce"})
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{7, 3}}) EXPECT_EQ(answerOn(1, name, shape).y, shape) << name;
}

// AllReduce has no reduce_in_backward: the reference never reads it.
TEST(Collectives, HaveNoAttributes) {
  for (const char* name : {"AllGather", "ReduceScatter", "AllReduce"})
    EXPECT_TRUE(builtinOperations().find(name)->attributes.empty()) << name;
}

TEST(BasicLinearOnRanks, ColumnSplitsTheOutputFeatures) {
  EXPECT_EQ(answerOn(4, "BasicLinear", {6, 12}, linearOf("column", false)), (Answer{{6, 2}, {2, 12}, ""}));
}

TEST(BasicLinearOnRanks, RowSplitsTheInputFeatures) {
  EXPECT_EQ(answerOn(4, "BasicLinear", {6, 3}, linearOf("row", false)), (Answer{{6, 8}, {8, 3}, ""}));
}

TEST(BasicLinearOnRanks, SequenceParallelGathersBeforeColumnAndScattersBehindRow) {
  EXPECT_EQ(answerOn(2, "BasicLinear", {6, 5, 12}, linearOf("column", true)), (Answer{{12, 5, 4}, {4, 12}, ""}));
  EXPECT_EQ(answerOn(2, "BasicLinear", {6, 5, 6}, linearOf("row", true)), (Answer{{3, 5, 8}, {8, 6}, ""}));
}

TEST(BasicLinearOnRanks, OneRankOrNoModeSwitchesBothOff) {
  for (const char* mode : {"none", "column", "row"})
    EXPECT_EQ(answerOn(1, "BasicLinear", {6, 12}, linearOf(mode, true)), (Answer{{6, 8}, {8, 12}, ""})) << mode;
  EXPECT_EQ(answerOn(4, "BasicLinear", {6, 12}, linearOf("none", true)), (Answer{{6, 8}, {8, 12}, ""}));
}

TEST(BasicLinearOnRanks, RefusesWhatRanksCannotShare) {
  EXPECT_EQ(answerOn(3, "BasicLinear", {6, 12}, linearOf("column", false)).refusal,
            "BasicLinear: out_features is 8, which 3 ranks cannot share equally; it must be a multiple of 3.");
  EXPECT_EQ(answerOn(8, "BasicLinear", {6, 12}, linearOf("row", false)).refusal,
            "BasicLinear: in_features is 12, which 8 ranks cannot share equally; it must be a multiple of 8.");
  EXPECT_EQ(answerOn(4, "BasicLinear", {6, 12}, linearOf("row", false)).refusal,
            "BasicLinear: in_features of one rank is 3, but the last axis of x has 12 elements.");
  EXPECT_EQ(answerOn(4, "BasicLinear", {6, 3}, linearOf("row", true)).refusal,
            "BasicLinear: the first axis of [6, 3] has 6 elements, which 4 ranks cannot share equally; it must be a "
            "multiple of 4.");
  EXPECT_EQ(answerOn(4, "BasicLinear", {12}, linearOf("column", true)).refusal,
            "BasicLinear: sequence_parallel splits the first axis of x, but x has the shape [12], features only; it "
            "needs at least two axes.");
}

TEST(BiasOnRanks, SplitsItsElements) {
  const Given split = {{"size", std::int64_t{8}}, {"tensor_parallel", true}};
  EXPECT_EQ(answerOn(4, "Bias", {6, 2}, split), (Answer{{6, 2}, {2}, ""}));
  EXPECT_EQ(answerOn(1, "Bias", {6, 8}, split), (Answer{{6, 8}, {8}, ""}));
  EXPECT_EQ(answerOn(4, "Bias", {6, 8}, {{"size", std::int64_t{8}}}), (Answer{{6, 8}, {8}, ""}));
  EXPECT_EQ(answerOn(3, "Bias", {6, 8}, split).refusal,
            "Bias: size is 8, which 3 ranks cannot share equally; it must be a multiple of 3.");
  EXPECT_EQ(answerOn(4, "Bias", {6, 8}, split).refusal,
            "Bias: size of one rank is 2, but the last axis of x has 8 elements.");
}

std::string namesOf(const std::vector<ExpandedOperation>& parts) {
  std::string names;
  for (const ExpandedOperation& part : parts) names += (names.empty() ? "" : " ") + part.operation;
  return names;
}

Attributes linearAttributes(const char* mode, bool isSequenceParallel) {
  Given given = linearOf(mode, isSequenceParallel);
  given.emplace_back("bias", true);
  return attributesOn("Linear", given);
}

TEST(LinearOnRanks, SumsBehindARowParallelLayer) {
  EXPECT_EQ(namesOf(*ops::linearParts(linearAttributes("none", true), 1)), "BasicLinear Bias");
  EXPECT_EQ(namesOf(*ops::linearParts(linearAttributes("column", true), 1)), "BasicLinear Bias");
  EXPECT_EQ(namesOf(*ops::linearParts(linearAttributes("row", false), 1)), "BasicLinear Bias AllReduce");
  EXPECT_EQ(namesOf(*ops::linearParts(linearAttributes("row", true), 1)), "BasicLinear Bias ReduceScatter");
}

/// Runs the shapes through the parts.
Shape outputOn(std::int64_t ranks, const Attributes& attributes, Shape x) {
  TensorSpec spec{.dtype = DType::BF16, .shape = std::move(x)};
  const Result<std::vector<ExpandedOperation>> parts = ops::linearParts(attributes, ranks);
  for (const ExpandedOperation& part : *parts) {
    const FusibleOperation& operation = *builtinOperations().find(part.operation);
    Attributes complete = attributesOn(part.operation.c_str(), {});
    for (const auto& [name, value] : part.attributes) complete.set(name, value);
    const auto specs = operation.inferOnRanks(complete, std::span(&spec, 1), ranks);
    EXPECT_TRUE(specs) << specs.error().message;
    spec = specs->outputs.front();
  }
  return spec.shape;
}

TEST(LinearOnRanks, HasTheShapesOfItsParts) {
  EXPECT_EQ(outputOn(4, linearAttributes("column", false), {6, 12}), (Shape{6, 2}));
  EXPECT_EQ(outputOn(2, linearAttributes("column", true), {6, 12}), (Shape{12, 4}));
  EXPECT_EQ(outputOn(4, linearAttributes("row", false), {6, 3}), (Shape{6, 8}));
  EXPECT_EQ(outputOn(2, linearAttributes("row", true), {6, 6}), (Shape{3, 8}));
}

// The effective bias is the sum over ranks (te_ops, section 7.1).
TEST(LinearOnRanks, GivesEveryRankOfARowParallelLayerABiasOfFullWidth) {
  const auto parts = ops::linearParts(linearAttributes("row", false), 4);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0].attributes.integer("in_features"), 3);
  EXPECT_EQ((*parts)[1].attributes.integer("size"), 32);
  EXPECT_TRUE((*parts)[1].attributes.boolean("tensor_parallel"));
}

TEST(LinearOnRanks, RefusesInputFeaturesThatRanksCannotShare) {
  const auto parts = ops::linearParts(linearAttributes("row", false), 5);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().message,
            "Linear: in_features is 12, which 5 ranks cannot share equally; it must be a multiple of 5.");
}

}  // namespace
}  // namespace fuseline
