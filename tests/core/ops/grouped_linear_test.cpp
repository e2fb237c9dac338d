// GroupedLinear by its definition: its ports, refusals, drawn inputs and saved tensors; each group is a linear layer.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "core/ops/grouped_form.h"
#include "tests/support/grouped_values.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

using List = std::vector<std::int64_t>;
using Settings = std::vector<std::pair<std::string, AttributeValue>>;

const FusibleOperation& groupedLinear() { return *builtinOperations().find("GroupedLinear"); }

Attributes attributesOf(std::int64_t numGroups, std::int64_t K, std::int64_t N, const Settings& others = {}) {
  Attributes attributes = defaultAttributes(groupedLinear());
  attributes.set("num_groups", numGroups);
  attributes.set("in_features", K);
  attributes.set("out_features", N);
  for (const auto& [name, value] : others) attributes.set(name, value);
  return attributes;
}

OperationPointer formFor(const Attributes& attributes) { return *specialised(groupedLinear(), attributes); }

std::vector<std::string> namesOf(const auto& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

// ---- declaration

using Names = std::vector<std::string>;

TEST(GroupedLinear, HasAWeightAndABiasForEachGroup) {
  const OperationPointer op = formFor(attributesOf(2, 4, 3));
  EXPECT_EQ(namesOf(op->inputs), (Names{"x", "split_sizes"}));
  EXPECT_EQ(namesOf(op->parameters), (Names{"weight0", "weight1", "bias0", "bias1"}));
}

TEST(GroupedLinear, HasOneParameterOfAllGroupsIfAsked) {
  EXPECT_EQ(namesOf(formFor(attributesOf(2, 4, 3, {{"single_grouped_weight", true}}))->parameters),
            (Names{"weight", "bias0", "bias1"}));
  EXPECT_EQ(namesOf(formFor(attributesOf(2, 4, 3, {{"single_grouped_bias", true}}))->parameters),
            (Names{"weight0", "weight1", "bias"}));
}

// As in TransformerEngine, where scale_bias without a bias adds no input.
TEST(GroupedLinear, ReadsScalesOnlyForABias) {
  EXPECT_EQ(namesOf(formFor(attributesOf(2, 4, 3, {{"scale_bias", true}}))->inputs),
            (Names{"x", "split_sizes", "scales"}));
  const OperationPointer without = formFor(attributesOf(2, 4, 3, {{"scale_bias", true}, {"bias", false}}));
  EXPECT_EQ(namesOf(without->inputs), (Names{"x", "split_sizes"}));
  EXPECT_EQ(namesOf(without->parameters), (Names{"weight0", "weight1"}));
}

// ---- inference

Result<OperationSpecs> infer(const Attributes& attributes, const std::vector<TensorSpec>& inputs) {
  return inferSpecs(*formFor(attributes), attributes, inputs);
}

TensorSpec sizesSpec(std::int64_t numGroups) { return {DType::I64, {numGroups}}; }

std::string refusal(const Attributes& attributes, const std::vector<TensorSpec>& inputs) {
  const Result<OperationSpecs> specs = infer(attributes, inputs);
  return specs ? "no refusal" : specs.error().message;
}

TEST(GroupedLinear, InfersTheDtypeOfTheWeights) {
  const auto specs = infer(attributesOf(2, 4, 3, {{"dtype", std::string("f16")}, {"single_grouped_bias", true}}),
                           {{DType::BF16, {5, 6, 4}}, sizesSpec(2)});
  ASSERT_TRUE(specs) << specs.error().message;
  EXPECT_EQ(specs->outputs, (std::vector<TensorSpec>{{DType::F16, {5, 6, 3}}}));
  EXPECT_EQ(specs->parameters,
            (std::vector<TensorSpec>{{DType::F16, {3, 4}}, {DType::F16, {3, 4}}, {DType::F16, {2, 3}}}));
}

TEST(GroupedLinear, KeepsTheAxisOfOneGroupInASingleParameter) {
  const auto specs =
      infer(attributesOf(1, 4, 3, {{"single_grouped_weight", true}}), {{DType::F32, {5, 4}}, sizesSpec(1)});
  ASSERT_TRUE(specs) << specs.error().message;
  EXPECT_EQ(specs->parameters, (std::vector<TensorSpec>{{DType::F32, {1, 3, 4}}, {DType::F32, {3}}}));
}

TEST(GroupedLinear, RefusesInputsThatDoNotFit) {
  const TensorSpec x{DType::F32, {6, 4}};
  EXPECT_EQ(refusal(attributesOf(2, 5, 3), {x, sizesSpec(2)}),
            "GroupedLinear: in_features is 5, but the last axis of x has 4 elements.");
  EXPECT_EQ(refusal(attributesOf(2, 4, 3), {x, sizesSpec(3)}),
            "GroupedLinear: num_groups is 2, but split_sizes has the shape [3]; it must have one size for each group, "
            "the shape [2].");
  EXPECT_EQ(refusal(attributesOf(2, 4, 3, {{"scale_bias", true}}), {x, sizesSpec(2), {DType::F32, {5}}}),
            "GroupedLinear: scales has the shape [5], but x has the shape [6, 4]; scales must have one value for each "
            "row, the shape [6].");
}

TEST(GroupedLinear, TakesIntegersForSizesOnly) {
  EXPECT_EQ(refusal(attributesOf(2, 4, 3), {{DType::F32, {6, 4}}, {DType::F32, {2}}}),
            "GroupedLinear: split_sizes is [2] f32, but it must be i64; it holds counts.");
  EXPECT_EQ(refusal(attributesOf(2, 4, 3), {{DType::I64, {6, 4}}, sizesSpec(2)}),
            "GroupedLinear: x is [6, 4] i64, but it must be f32, f16 or bf16; integers are counts only.");
}

// Ops whose main input holds numbers pass the same check.
TEST(AnyOp, RefusesIntegersAsItsMainInput) {
  for (const auto& op : builtinOperations().operations()) {
    if (op->inputs[0].elements != PortElements::Numbers) continue;
    const std::vector<TensorSpec> inputs(op->inputs.size(), {DType::I64, {4, 4}});
    const auto error = checkElements(*op, inputs);
    ASSERT_TRUE(error) << op->name;
    EXPECT_EQ(error->message,
              op->name + ": x is [4, 4] i64, but it must be f32, f16 or bf16; integers are counts only.");
  }
}

TEST(GroupedLinear, CountsFlops) {
  const std::vector<TensorSpec> inputs = {{DType::F32, {6, 4}}, sizesSpec(2), {DType::F32, {6}}};
  const auto flops = [&](const Settings& settings) {
    const FlopCount count = groupedLinear().flops(attributesOf(2, 4, 3, settings), inputs);
    return std::pair(count.forward, count.backward);
  };
  EXPECT_EQ(flops({{"bias", false}}), std::pair(2L * 6 * 4 * 3, 4L * 6 * 4 * 3));
  EXPECT_EQ(flops({}), std::pair(2L * 6 * 4 * 3 + 18, 4L * 6 * 4 * 3 + 18));
  EXPECT_EQ(flops({{"scale_bias", true}}), std::pair(2L * 6 * 4 * 3 + 2 * 18, 4L * 6 * 4 * 3 + 4 * 18));
}

// ---- split sizes

TEST(SplitSizes, DivideRowsInOrder) {
  const auto groups = divideRows(List{2, 0, 3}, 5);
  ASSERT_TRUE(groups);
  const List firsts = {(*groups)[0].first, (*groups)[1].first, (*groups)[2].first};
  EXPECT_EQ(firsts, (List{0, 2, 2}));
}

std::string divisionError(const List& sizes, std::int64_t rows) {
  const auto groups = divideRows(sizes, rows);
  return groups ? "no error" : groups.error().message;
}

TEST(SplitSizes, MustDivideTheRows) {
  EXPECT_EQ(divisionError({3, 2}, 6), "split_sizes is [3, 2], but x has 6 rows; the sizes must add up to 6.");
  EXPECT_EQ(divisionError({3, 4}, 6), "split_sizes is [3, 4], but x has 6 rows; the sizes must add up to 6.");
  EXPECT_EQ(divisionError({7, -1}, 6),
            "split_sizes is [7, -1], but a group cannot have -1 rows; x has 6 rows to divide.");
}

TEST(SplitSizes, DoNotOverflow) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(divisionError({kLargest, kLargest, 8}, 6), "no error");
  EXPECT_NE(divisionError(List(40, kLargest), 6).find("..."), std::string::npos);
}

RC_GTEST_PROP(SplitSizes, AreDrawnAsAPartitionOfTheRows, ()) {
  const auto numGroups = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto rows = *rc::gen::inRange<std::int64_t>(0, 50);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto distribution = *rc::gen::element<std::string>("random", "even", "zipf");
  const Attributes attributes = attributesOf(numGroups, 4, 3, {{"distribution", distribution}});
  const std::vector<TensorSpec> inputs = {{DType::F32, {rows, 4}}, sizesSpec(numGroups)};
  const auto draw = [&] { return formFor(attributes)->inputs[1].draw({attributes, inputs, seed, "splits"}); };
  const std::vector<double> sizes = draw().toDoubles();
  RC_ASSERT(draw().spec == inputs[1]);
  RC_ASSERT(draw().toDoubles() == sizes);
  RC_ASSERT(std::ranges::all_of(sizes, [](double size) { return size >= 0.0; }));
  RC_ASSERT(std::accumulate(sizes.begin(), sizes.end(), 0.0) == static_cast<double>(rows));
}

TEST(SplitSizes, AreDrawnFromTheDistribution) {
  const auto drawn = [](const Settings& settings) {
    const Attributes attributes = attributesOf(4, 4, 3, settings);
    const std::vector<TensorSpec> inputs = {{DType::F32, {1536, 4}}, sizesSpec(4)};
    return formFor(attributes)->inputs[1].draw({attributes, inputs, 1, "splits"}).toDoubles();
  };
  EXPECT_EQ(drawn({{"distribution", "even"}}), std::vector<double>(4, 384.0));
  EXPECT_EQ(drawn({{"distribution", "zipf"}}), (std::vector<double>{768, 384, 256, 128}));
  EXPECT_EQ(drawn({{"distribution", "zipf"}, {"zipf_exponent", 0.0}}), std::vector<double>(4, 384.0));
}

// ---- mathematics

/// A call of the op, with one parameter a group or one for all.
struct Call {
  GroupedValues values;
  bool isSingle = false;

  bool isScaled() const { return !values.scales.empty(); }

  Attributes attributes() const {
    return attributesOf(
        std::ssize(values.sizes), values.K, values.N,
        {{"scale_bias", isScaled()}, {"single_grouped_weight", isSingle}, {"single_grouped_bias", isSingle}});
  }

  std::vector<ReferenceTensor> inputs() const {
    std::vector<ReferenceTensor> all = {{{values.rows(), values.K}, values.x}, {{std::ssize(values.sizes)}, {}}};
    for (const std::int64_t size : values.sizes) all[1].values.push_back(static_cast<double>(size));
    if (isScaled()) all.push_back({{values.rows()}, values.scales});
    return all;
  }

  std::vector<ReferenceTensor> parameters() const {
    std::vector<ReferenceTensor> all;
    append(values.weights, {values.N, values.K}, all);
    append(values.biases, {values.N}, all);
    return all;
  }

 private:
  void append(const std::vector<std::vector<double>>& parts, Shape shape, std::vector<ReferenceTensor>& all) const {
    if (!isSingle)
      for (const std::vector<double>& part : parts) all.push_back({shape, part});
    if (!isSingle) return;
    shape.insert(shape.begin(), std::ssize(parts));
    all.push_back({shape, joined(parts)});
  }
};

/// Small multiples of 1/4, so that every sum is exact.
std::vector<double> arbitraryValues(std::int64_t size) {
  std::vector<double> values;
  for (const int value : *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(size), rc::gen::inRange(-8, 9)))
    values.push_back(0.25 * value);
  return values;
}

Call arbitraryCall() {
  Call call{.isSingle = *rc::gen::arbitrary<bool>()};
  GroupedValues& values = call.values;
  values.sizes = *rc::gen::nonEmpty(rc::gen::resize(5, rc::gen::container<List>(rc::gen::inRange<std::int64_t>(0, 5))));
  values.K = *rc::gen::inRange<std::int64_t>(1, 5);
  values.N = *rc::gen::inRange<std::int64_t>(1, 5);
  values.x = arbitraryValues(values.rows() * values.K);
  values.gradY = arbitraryValues(values.rows() * values.N);
  if (*rc::gen::arbitrary<bool>()) values.scales = arbitraryValues(values.rows());
  for (std::size_t group = 0; group < values.sizes.size(); ++group) {
    values.weights.push_back(arbitraryValues(values.N * values.K));
    values.biases.push_back(arbitraryValues(values.N));
  }
  return call;
}

std::vector<double> valuesOf(std::span<const ReferenceTensor> tensors) {
  std::vector<std::vector<double>> parts;
  for (const ReferenceTensor& tensor : tensors) parts.push_back(tensor.values);
  return joined(parts);
}

ReferenceBackward backwardOf(const Call& call) {
  const Attributes attributes = call.attributes();
  const std::vector<ReferenceTensor> inputs = call.inputs();
  const std::vector<ReferenceTensor> parameters = call.parameters();
  const GradientNeeds all{.inputs = std::vector<bool>(inputs.size(), true),
                          .parameters = std::vector<bool>(parameters.size(), true)};
  SavedValues saved;
  for (const SavedTensor& key : groupedLinear().saveContext({attributes, {}, all}).tensors)
    saved.add(key, (key.kind == OperandKind::Input ? inputs : parameters)[static_cast<std::size_t>(key.slot)]);
  const ReferenceTensor gradY{{call.values.rows(), call.values.N}, call.values.gradY};
  return groupedLinear().backwardCompute(attributes, saved, {&gradY, 1});
}

RC_GTEST_PROP(GroupedLinear, EqualsALinearForEachSliceOfRows, ()) {
  const Call call = arbitraryCall();
  const ReferenceForward forward = groupedLinear().forwardCompute(call.attributes(), call.inputs(), call.parameters());
  RC_ASSERT(forward.outputs[0].values == groupedResults(call.values).y);
}

RC_GTEST_PROP(GroupedLinear, HasTheGradientsOfALinearForEachSliceOfRows, ()) {
  const Call call = arbitraryCall();
  const GroupedResults expected = groupedResults(call.values);
  const ReferenceBackward gradients = backwardOf(call);
  const std::span<const ReferenceTensor> ofParameters = gradients.parameters;
  const std::size_t numWeights = call.isSingle ? 1 : call.values.sizes.size();
  RC_ASSERT(gradients.inputs[0].values == expected.gradX);
  RC_ASSERT(valuesOf(ofParameters.first(numWeights)) == joined(expected.gradWeights));
  RC_ASSERT(valuesOf(ofParameters.subspan(numWeights)) == joined(expected.gradBiases));
  if (call.isScaled()) RC_ASSERT(gradients.inputs[2].values == expected.gradScales);
}

TEST(GroupedLinear, ThrowsWhereTheSizesDoNotDivideTheRows) {
  const Attributes attributes = attributesOf(2, 1, 1, {{"bias", false}});
  const std::vector<ReferenceTensor> weights(2, {.shape = {1, 1}, .values = {1.0}});
  const std::vector<ReferenceTensor> inputs = {{.shape = {3, 1}, .values = {1, 2, 3}},
                                               {.shape = {2}, .values = {1, 1e19}}};
  EXPECT_THROW(groupedLinear().forwardCompute(attributes, inputs, weights), std::invalid_argument);
}

// ---- tensors kept for backward

std::vector<SavedTensor> savedFor(const Settings& settings, std::vector<bool> inputs, std::vector<bool> parameters) {
  const Attributes attributes = attributesOf(2, 4, 3, settings);
  return formFor(attributes)
      ->saveContext({attributes, {}, {.inputs = std::move(inputs), .parameters = std::move(parameters)}})
      .tensors;
}

constexpr SavedTensor input(int slot) { return {OperandKind::Input, slot}; }
constexpr SavedTensor parameter(int slot) { return {OperandKind::Parameter, slot}; }
using Saved = std::vector<SavedTensor>;

TEST(GroupedLinear, KeepsOnlyWhatTheNeededGradientsRead) {
  const Settings scaled = {{"scale_bias", true}};
  const std::vector<bool> none(4, false);
  EXPECT_EQ(savedFor({}, {false, false}, none), Saved{});
  EXPECT_EQ(savedFor({}, {true, false}, none), (Saved{input(1), parameter(0), parameter(1)}));
  EXPECT_EQ(savedFor({}, {false, false}, {false, true, false, false}), (Saved{input(1), input(0)}));
  EXPECT_EQ(savedFor({}, {false, false}, {false, false, true, true}), (Saved{input(1)}));
  EXPECT_EQ(savedFor(scaled, {false, false, false}, {false, false, true, false}), (Saved{input(1), input(2)}));
  EXPECT_EQ(savedFor(scaled, {false, false, true}, none), (Saved{input(1), parameter(2), parameter(3)}));
}

}  // namespace
}  // namespace fuseline
