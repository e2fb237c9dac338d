// The catalog refuses ops that are only half defined, each with its sentence.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"

#include <functional>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// A complete op that does nothing.
FusibleOperation complete() {
  return {.name = "Probe",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = [](const Attributes&, std::span<const TensorSpec>) -> Result<OperationSpecs> {
            return OperationSpecs{};
          },
          .flops = [](const Attributes&, auto) { return FlopCount{}; },
          .forwardCompute = [](const Attributes&, auto, auto) { return ReferenceForward{}; },
          .saveContext = [](const SaveArguments&) { return OperationContext{}; },
          .backwardCompute = [](const Attributes&, const SavedValues&, auto) { return ReferenceBackward{}; }};
}

/// The sentence for `complete()` after a change; empty when it is accepted.
std::string refusalAfter(const std::function<void(FusibleOperation&)>& change) {
  FusibleOperation operation = complete();
  change(operation);
  const Result<OperationCatalog> catalog = OperationCatalog::create({operation});
  return catalog ? std::string() : catalog.error().message;
}

TEST(OperationCatalog, AcceptsACompleteOp) {
  EXPECT_EQ(refusalAfter([](FusibleOperation&) {}), "");
}

TEST(OperationCatalog, RefusesHalfOfTheComputeAndContextPair) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.saveContext = nullptr; }),
            "Probe: forwardCompute is defined without saveContext; define both.");
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.forwardCompute = nullptr; }),
            "Probe: saveContext is defined without forwardCompute; define both.");
}

TEST(OperationCatalog, RefusesBackwardAlone) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.forwardCompute = nullptr;
              op.saveContext = nullptr;
            }),
            "Probe: backwardCompute is defined without forwardCompute and saveContext; define all three.");
}

TEST(OperationCatalog, RefusesAnOpWithoutBackward) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.backwardCompute = nullptr; }),
            "Probe: forwardCompute and backwardCompute are both needed.");
}

TEST(OperationCatalog, RefusesAnOpWithoutComputations) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.forwardCompute = nullptr;
              op.saveContext = nullptr;
              op.backwardCompute = nullptr;
            }),
            "Probe: forwardCompute and backwardCompute are both needed.");
}

TEST(OperationCatalog, RefusesAnOpWithoutInference) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.infer = nullptr; }), "Probe: there is no infer function.");
}

TEST(OperationCatalog, RefusesAnOpWithoutAFlopCount) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.flops = nullptr; }), "Probe: there is no flops function.");
}

TEST(OperationCatalog, RefusesAnOpWithoutAName) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.name.clear(); }), "An op has no name.");
}

TEST(OperationCatalog, AcceptsAnOpThatDependsOnItsAttributes) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.specialise = [](const FusibleOperation&, const Attributes&) -> Result<FusibleOperation> {
                return complete();
              };
            }),
            "");
}

TEST(OperationCatalog, RefusesSpecialiseWithoutADefaultForm) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.specialise = [](const FusibleOperation&, const Attributes&) -> Result<FusibleOperation> {
                return Error{"Probe: not so."};
              };
            }),
            "Probe: specialise refuses the default attributes: Probe: not so.");
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.attributes = {{.name = "width"}};
              op.specialise = [](const FusibleOperation&, const Attributes& attributes) -> Result<FusibleOperation> {
                return attributes.integer("width") > 0 ? complete() : FusibleOperation{};
              };
            }),
            "Probe: specialise refuses the default attributes: it reads an attribute that has no default.");
}

TEST(OperationCatalog, AcceptsSpecialiseThatDoesNotReadWhatHasNoDefault) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.attributes = {{.name = "width"}};
              op.specialise = [](const FusibleOperation&, const Attributes&) -> Result<FusibleOperation> {
                return complete();
              };
            }),
            "");
}

TEST(OperationCatalog, RefusesCountsThatCannotBeDrawn) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.inputs.push_back({.name = "sizes", .shape = "[G]", .elements = PortElements::Counts});
            }),
            "Probe: sizes takes counts, but has no draw function.");
}

TEST(OperationCatalog, RefusesSpecialiseThatMakesAnotherOrHalfAnOp) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.specialise = [](const FusibleOperation&, const Attributes&) -> Result<FusibleOperation> {
                FusibleOperation other = complete();
                other.name = "Other";
                return other;
              };
            }),
            "Probe: specialise makes the op Other; the name must stay.");
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.specialise = [](const FusibleOperation&, const Attributes&) -> Result<FusibleOperation> {
                FusibleOperation half = complete();
                half.saveContext = nullptr;
                return half;
              };
            }),
            "Probe: forwardCompute is defined without saveContext; define both.");
}

TEST(OperationCatalog, RefusesAnOpWithoutMainPorts) {
  const std::string sentence = "Probe: an op needs a main input and a main output.";
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.inputs.clear(); }), sentence);
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.outputs.clear(); }), sentence);
}

TEST(OperationCatalog, RefusesHalfAnElementwiseDefinition) {
  const std::string sentence = "Probe: the elementwise definition has only one direction.";
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.elementwise.forward = [](auto&, auto&) {}; }), sentence);
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.elementwise.backward = [](auto&, auto&) {}; }), sentence);
}

TEST(OperationCatalog, RefusesAViewThatComputes) {
  const std::string sentence = "Probe: a view has one input and one output, and computes nothing.";
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) { op.isView = true; }), "");
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.isView = true;
              op.outputs.push_back({"extra"});
            }),
            sentence);
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.isView = true;
              op.parameters.push_back({"weight"});
            }),
            sentence);
}

TEST(OperationCatalog, RefusesACompositeThatComputes) {
  EXPECT_EQ(refusalAfter([](FusibleOperation& op) {
              op.expand = [](const Attributes&) { return std::vector<ExpandedOperation>{}; };
            }),
            "Probe: a composite is only its expansion, but it also defines its own computations.");
}

TEST(OperationCatalog, RefusesTwoOpsOfOneName) {
  const Result<OperationCatalog> catalog = OperationCatalog::create({complete(), complete()});
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().message, "Probe: two ops have this name.");
}

TEST(BuiltinOperations, AreFoundByTheNamesOfTransformerEngine) {
  for (const char* name : {"Linear",
                           "BasicLinear",
                           "Bias",
                           "GELU",
                           "QGELU",
                           "ReLU",
                           "SReLU",
                           "SiLU",
                           "GLU",
                           "GEGLU",
                           "QGEGLU",
                           "ReGLU",
                           "SReGLU",
                           "SwiGLU",
                           "ClampedSwiGLU",
                           "SiTUGLU",
                           "RMSNorm",
                           "LayerNorm",
                           "ConstantScale",
                           "AddExtraInput",
                           "MakeExtraOutput",
                           "Identity",
                           "L2Normalization",
                           "Reshape",
                           "Quantize",
                           "AllGather",
                           "ReduceScatter",
                           "AllReduce",
                           "ScaledSReLU",
                           "ScaledTanhSReLU",
                           "ScaledSwiGLU",
                           "ScaledSiTUGLU",
                           "ScaledClampedQGeGLU",
                           "Dropout"}) {
    ASSERT_NE(builtinOperations().find(name), nullptr) << name;
    EXPECT_EQ(builtinOperations().find(name)->name, name);
  }
  EXPECT_EQ(builtinOperations().find("gelu"), nullptr);
}

TEST(BuiltinOperations, SuggestTheNearestName) {
  EXPECT_EQ(builtinOperations().nearestName("RMSnrom"), "RMSNorm");
  EXPECT_EQ(builtinOperations().nearestName("gelu"), "GELU");
  EXPECT_EQ(builtinOperations().nearestName("FlashAttention"), "");
}

}  // namespace
}  // namespace fuseline
