// Inferred specs of the ops, and the sentences of their refusals.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Specs = std::vector<TensorSpec>;

/// The defaults of an op with some attributes set.
Attributes attributesOf(const char* name, const std::vector<std::pair<std::string, AttributeValue>>& given) {
  Attributes attributes;
  for (const AttributeSpec& spec : builtinOperations().find(name)->attributes)
    attributes.set(spec.name, spec.defaultValue);
  for (const auto& [attribute, value] : given) attributes.set(attribute, value);
  return attributes;
}

Result<OperationSpecs> infer(const char* name, const Specs& inputs,
                             const std::vector<std::pair<std::string, AttributeValue>>& given = {}) {
  return builtinOperations().find(name)->infer(attributesOf(name, given), inputs);
}

std::string refusal(const char* name, const Specs& inputs,
                    const std::vector<std::pair<std::string, AttributeValue>>& given = {}) {
  const Result<OperationSpecs> specs = infer(name, inputs, given);
  return specs ? "no refusal" : specs.error().message;
}

using List = std::vector<std::int64_t>;

TEST(BasicLinearInference, RefusesAnotherWidth) {
  EXPECT_EQ(refusal("BasicLinear", {{DType::F32, {4, 512}}},
                    {{"in_features", std::int64_t{1024}}, {"out_features", std::int64_t{8}}}),
            "BasicLinear: in_features is 1024, but the last axis of x has 512 elements.");
  EXPECT_EQ(refusal("BasicLinear", {{DType::F32, {}}},
                    {{"in_features", std::int64_t{1024}}, {"out_features", std::int64_t{8}}}),
            "BasicLinear: in_features is 1024, but x is a scalar; it needs at least one axis.");
}

TEST(BasicLinearInference, ComputesInTheDtypeOfTheWeight) {
  const Result<OperationSpecs> specs =
      infer("BasicLinear", {{DType::BF16, {2, 3, 4}}},
            {{"in_features", std::int64_t{4}}, {"out_features", std::int64_t{5}}, {"dtype", std::string("f16")}});
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->outputs, (Specs{{DType::F16, {2, 3, 5}}}));
  EXPECT_EQ(specs->parameters, (Specs{{DType::F16, {5, 4}}}));
}

TEST(BasicLinearInference, CountsTwoOperationsAProduct) {
  const FusibleOperation& op = *builtinOperations().find("BasicLinear");
  const Attributes attributes =
      attributesOf("BasicLinear", {{"in_features", std::int64_t{16}}, {"out_features", std::int64_t{32}}});
  const FlopCount flops = op.flops(attributes, Specs{{DType::F32, {8, 16}}});
  EXPECT_EQ(flops.forward, 2 * 8 * 16 * 32);
  EXPECT_EQ(flops.backward, 4 * 8 * 16 * 32);
}

TEST(BiasInference, RefusesAnotherWidth) {
  EXPECT_EQ(refusal("Bias", {{DType::F32, {4, 7}}}, {{"size", std::int64_t{8}}}),
            "Bias: size is 8, but the last axis of x has 7 elements.");
}

// PyTorch's promotion: bf16 + f32 and bf16 + f16 are f32.
TEST(BiasInference, PromotesUnequalDtypesToF32) {
  for (const char* dtype : {"f32", "f16"}) {
    const auto specs =
        infer("Bias", {{DType::BF16, {4, 8}}}, {{"size", std::int64_t{8}}, {"dtype", std::string(dtype)}});
    ASSERT_TRUE(specs);
    EXPECT_EQ(specs->outputs, (Specs{{DType::F32, {4, 8}}}));
  }
}

TEST(SwigluInference, HalvesTheLastAxis) {
  const auto specs = infer("SwiGLU", {{DType::BF16, {3, 8}}});
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->outputs, (Specs{{DType::BF16, {3, 4}}}));
}

TEST(SwigluInference, RefusesAnOddWidth) {
  EXPECT_EQ(refusal("SwiGLU", {{DType::F32, {4, 7}}}),
            "SwiGLU: the last axis of x has 7 elements, but it is split in two halves and must be even.");
  EXPECT_EQ(refusal("SwiGLU", {{DType::F32, {}}}),
            "SwiGLU: x is a scalar, but its last axis is to be split in two halves.");
}

TEST(GatedInference, HalvesTheLastAxisAndRefusesAnOddOne) {
  for (const char* name : {"GLU", "GEGLU", "QGEGLU", "ReGLU", "SReGLU", "SwiGLU", "ClampedSwiGLU", "SiTUGLU"}) {
    const auto specs = infer(name, {{DType::F16, {2, 3, 10}}});
    ASSERT_TRUE(specs) << name;
    EXPECT_EQ(specs->outputs, (Specs{{DType::F16, {2, 3, 5}}})) << name;
    EXPECT_EQ(
        refusal(name, {{DType::F32, {4, 7}}}),
        std::string(name) + ": the last axis of x has 7 elements, but it is split in two halves and must be even.");
  }
}

TEST(SituGluInference, RefusesALimitThatIsNotFiniteAndPositive) {
  const Specs x = {{DType::F32, {4, 8}}};
  EXPECT_EQ(refusal("SiTUGLU", x, {{"beta1", 0.0}}), "SiTUGLU: beta1 is 0, but it must be finite and more than 0.");
  EXPECT_EQ(refusal("SiTUGLU", x, {{"beta2", -2.5}}), "SiTUGLU: beta2 is -2.5, but it must be finite and more than 0.");
  EXPECT_EQ(refusal("SiTUGLU", x, {{"beta2", std::numeric_limits<double>::infinity()}}),
            "SiTUGLU: beta2 is inf, but it must be finite and more than 0.");
  EXPECT_EQ(refusal("SiTUGLU", x, {{"beta1", std::nan("")}}),
            "SiTUGLU: beta1 is nan, but it must be finite and more than 0.");
}

TEST(ClampedSwiGluInference, RefusesAttributesThatAreNoLimits) {
  const Specs x = {{DType::F32, {4, 8}}};
  EXPECT_EQ(refusal("ClampedSwiGLU", x, {{"limit", -1.0}}),
            "ClampedSwiGLU: limit is -1, but it must be finite and at least 0.");
  EXPECT_EQ(refusal("ClampedSwiGLU", x, {{"alpha", std::nan("")}}),
            "ClampedSwiGLU: alpha is nan, but it must be finite.");
  EXPECT_EQ(refusal("ClampedSwiGLU", x, {{"glu_linear_offset", std::numeric_limits<double>::infinity()}}),
            "ClampedSwiGLU: glu_linear_offset is inf, but it must be finite.");
}

TEST(InterleavedInference, RefusesAWidthThatIsNoMultipleOfTwoBlocks) {
  for (const char* name : {"SwiGLU", "ClampedSwiGLU", "SiTUGLU"}) {
    EXPECT_TRUE(infer(name, {{DType::F32, {2, 18}}}, {{"glu_interleave_size", std::int64_t{3}}})) << name;
    EXPECT_EQ(refusal(name, {{DType::F32, {2, 20}}}, {{"glu_interleave_size", std::int64_t{3}}}),
              std::string(name) +
                  ": the last axis of x has 20 elements, but with glu_interleave_size 3 it must be a multiple of 6 "
                  "(a block of a and a block of b).");
  }
}

TEST(ScaledInference, TakesOneScaleForEachRow) {
  const auto unary = infer("ScaledSReLU", {{DType::BF16, {2, 3, 10}}, {DType::F32, {2, 3}}});
  ASSERT_TRUE(unary);
  EXPECT_EQ(unary->outputs, (Specs{{DType::BF16, {2, 3, 10}}}));
  for (const char* name : {"ScaledSwiGLU", "ScaledSiTUGLU", "ScaledClampedQGeGLU"}) {
    const auto specs = infer(name, {{DType::F16, {2, 3, 10}}, {DType::F16, {2, 3}}});
    ASSERT_TRUE(specs) << name;
    EXPECT_EQ(specs->outputs, (Specs{{DType::F16, {2, 3, 5}}})) << name;
  }
  EXPECT_EQ(
      refusal("ScaledSwiGLU", {{DType::F32, {4, 8}}, {DType::F32, {4, 8}}}),
      "ScaledSwiGLU: scales has the shape [4, 8], but x has the shape [4, 8]; scales must have one value for each "
      "row, the shape [4].");
  EXPECT_EQ(refusal("ScaledSReLU", {{DType::F32, {}}, {DType::F32, {}}}),
            "ScaledSReLU: x is a scalar; it needs at least one axis, because the input scales has one value for each "
            "row of x.");
}

TEST(ScaledInference, RefusesWhatTransformerEngineRefuses) {
  const Specs specs = {{DType::F32, {4, 128}}, {DType::F32, {4}}};
  EXPECT_TRUE(infer("ScaledSwiGLU", specs, {{"glu_interleave_size", std::int64_t{64}}}));
  EXPECT_EQ(refusal("ScaledSwiGLU", specs, {{"glu_interleave_size", std::int64_t{16}}}),
            "ScaledSwiGLU: glu_interleave_size is 16, but it must be a multiple of 32 here.");
  EXPECT_EQ(refusal("ScaledClampedQGeGLU", specs, {{"activation_recompute_in_mlp", true}}),
            "ScaledClampedQGeGLU: activation_recompute_in_mlp is true, but only an activation without a gate can be "
            "recomputed; set it to false.");
  EXPECT_EQ(refusal("ScaledSiTUGLU", specs, {{"beta1", 0.0}}),
            "ScaledSiTUGLU: beta1 is 0, but it must be finite and more than 0.");
}

TEST(DropoutInference, RefusesWhatIsNoProbabilityBelowOne) {
  const Specs x = {{DType::BF16, {4, 8}}};
  EXPECT_TRUE(infer("Dropout", x, {{"p", 0.0}}));
  EXPECT_EQ(infer("Dropout", x, {{"p", 0.999}})->outputs, x);
  EXPECT_EQ(refusal("Dropout", x, {{"p", 1.0}}), "Dropout: p is 1, but it must be at least 0 and less than 1.");
  EXPECT_EQ(refusal("Dropout", x, {{"p", -0.5}}), "Dropout: p is -0.5, but it must be at least 0 and less than 1.");
  EXPECT_EQ(refusal("Dropout", x, {{"p", std::nan("")}}),
            "Dropout: p is nan, but it must be at least 0 and less than 1.");
}

TEST(NormInference, RefusesAnotherShape) {
  EXPECT_EQ(refusal("RMSNorm", {{DType::F32, {4, 8}}}, {{"normalized_shape", List{7}}}),
            "RMSNorm: normalized_shape is [7], but x has the shape [4, 8]; its last axes must be the same.");
  EXPECT_EQ(refusal("LayerNorm", {{DType::F32, {8}}}, {{"normalized_shape", List{4, 8}}}),
            "LayerNorm: normalized_shape is [4, 8], but x has the shape [8]; its last axes must be the same.");
  EXPECT_EQ(refusal("LayerNorm", {{DType::F32, {4, 8}}}, {{"normalized_shape", List{}}}),
            "LayerNorm: normalized_shape is empty; it needs at least one axis, such as [8].");
}

TEST(NormInference, HasOneF32StatisticForEachRow) {
  const auto specs = infer("LayerNorm", {{DType::BF16, {2, 3, 8}}}, {{"normalized_shape", List{8}}});
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->residuals, (Specs{{DType::F32, {2, 3}}, {DType::F32, {2, 3}}}));
  EXPECT_EQ(specs->parameters, (Specs{{DType::BF16, {8}}, {DType::BF16, {8}}}));
}

TEST(NormInference, ComputesInTheDtypeOfTheWeight) {
  const auto specs =
      infer("RMSNorm", {{DType::F32, {3, 8}}}, {{"normalized_shape", List{3, 8}}, {"dtype", std::string("bf16")}});
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->outputs, (Specs{{DType::BF16, {3, 8}}}));
  EXPECT_EQ(specs->parameters, (Specs{{DType::BF16, {3, 8}}}));
  EXPECT_EQ(specs->residuals, (Specs{{DType::F32, {}}}));
}

TEST(L2NormalizationInference, HasNoWeightAndOneF32FactorForEachRow) {
  const auto specs = infer("L2Normalization", {{DType::BF16, {2, 3, 8}}});
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->outputs, (Specs{{DType::BF16, {2, 3, 8}}}));
  EXPECT_EQ(specs->residuals, (Specs{{DType::F32, {2, 3}}}));
  EXPECT_TRUE(specs->parameters.empty());
  EXPECT_EQ(refusal("L2Normalization", {{DType::F32, {}}}),
            "L2Normalization: x is a scalar, but its last axis is to be normalized; it needs at least one axis.");
}

std::string reshapeRefusal(const List& x, const List& shape) {
  return refusal("Reshape", {{DType::F32, x}}, {{"shape", shape}});
}

TEST(ReshapeInference, RefusesAnotherNumberOfElements) {
  EXPECT_EQ(reshapeRefusal({5, 7}, {2, 12}),
            "Reshape: shape is [2, 12], but x has the shape [5, 7]: it has 24 elements, but x has 35. Set one "
            "dimension to -1.");
  EXPECT_EQ(reshapeRefusal({6, 7}, {-1, 4, -1}),
            "Reshape: shape is [-1, 4, -1], but x has the shape [6, 7]: only one dimension may be -1, which is then "
            "inferred.");
  EXPECT_EQ(reshapeRefusal({5, 7}, {-1, 6}),
            "Reshape: shape is [-1, 6], but x has the shape [5, 7]: its 35 elements are not a multiple of the "
            "product of the other dimensions. Change these.");
  EXPECT_EQ(reshapeRefusal({0, 7}, {-1, 0}),
            "Reshape: shape is [-1, 0], but x has the shape [0, 7]: next to a dimension of 0, -1 is ambiguous; give "
            "its value.");
}

TEST(ReshapeInference, SurvivesShapesThat64BitsCannotCount) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_NE(reshapeRefusal({5, 7}, {large, large}).find("it has more than 35 elements"), std::string::npos);
  EXPECT_NE(reshapeRefusal({5, 7}, {-1, large, large}).find("not a multiple"), std::string::npos);
}

TEST(ReshapeInference, AcceptsEmptyTensorsAndScalars) {
  const auto shapeOf = [](const List& x, const List& shape) {
    return infer("Reshape", {{DType::F32, x}}, {{"shape", shape}})->outputs[0].shape;
  };
  EXPECT_EQ(shapeOf({0, 6}, {-1, 3}), (Shape{0, 3}));
  EXPECT_EQ(shapeOf({}, {1, -1}), (Shape{1, 1}));
  EXPECT_EQ(shapeOf({1, 1}, {}), (Shape{}));
}

TEST(AddExtraInputInference, RefusesUnequalShapes) {
  EXPECT_EQ(refusal("AddExtraInput", {{DType::F32, {4, 8}}, {DType::F32, {8}}}),
            "AddExtraInput: extra has the shape [8], but x has the shape [4, 8]; both must be the same.");
}

TEST(AddExtraInputInference, HasTheDtypeOfTheSumOrInPlaceOfTheExtraTensor) {
  const Specs inputs = {{DType::F32, {4}}, {DType::BF16, {4}}};
  EXPECT_EQ(infer("AddExtraInput", inputs)->outputs, (Specs{{DType::F32, {4}}}));
  EXPECT_EQ(infer("AddExtraInput", inputs, {{"in_place", true}})->outputs, (Specs{{DType::BF16, {4}}}));
}

TEST(StructureInference, AcceptsScalars) {
  for (const char* name : {"Identity", "MakeExtraOutput", "GELU"}) EXPECT_TRUE(infer(name, {{DType::F32, {}}})) << name;
  EXPECT_TRUE(infer("ConstantScale", {{DType::F32, {}}}, {{"scale", 2.0}}));
}

}  // namespace
}  // namespace fuseline
