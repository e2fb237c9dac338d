// Tensors of a plan that can be captured, and the reasons why others cannot.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/capturable_tensors.h"

#include "tests/support/pipelines.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Analysis analysed(Graph plain, const char* recipe = "None") {
  Analysis analysis;
  std::vector<Diagnostic> diagnostics;
  analysis.lowered.graph = applyRecipe(std::move(plain), *Recipe::create(*findRecipe(recipe)), diagnostics);
  analysis.report = *fuse(analysis.graph());
  analysis.fusedPlan = std::make_shared<const Plan>(makePlan(analysis.graph(), analysis.report));
  analysis.withoutFusions = std::make_shared<const LazyPlan>(PlanOptions());
  return analysis;
}

Analysis linearAndGelu() { return analysed(chain(DType::BF16, {8, 16}, {linear(32, "fc"), link("GELU", "act")})); }

Analysis normAndLinear(const char* recipe) {
  return analysed(chain(DType::BF16, {128, 256}, {link("RMSNorm", "norm"), linear(128, "fc")}), recipe);
}

std::vector<CapturableTensor> inFusedPlan(const Analysis& analysis) {
  return capturableTensors(analysis, *analysis.fusedPlan);
}

const CapturableTensor& named(const std::vector<CapturableTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &CapturableTensor::name);
  if (found == tensors.end()) throw std::runtime_error("there is no " + name);
  return *found;
}

std::set<std::string> namesOf(const std::vector<CapturableTensor>& tensors) {
  std::set<std::string> names;
  for (const CapturableTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

TEST(CapturableTensors, OfTheUnfusedPlanAreAllOfIt) {
  const Analysis analysis = linearAndGelu();
  const auto tensors = capturableTensors(analysis, analysis.unfusedPlan());
  EXPECT_EQ(namesOf(tensors),
            (std::set<std::string>{"x", "fc.weight", "fc:y", "y", "grad.y", "grad.fc:y", "grad.fc.weight", "grad.x"}));
  EXPECT_TRUE(std::ranges::all_of(tensors, &CapturableTensor::isStored));
  EXPECT_EQ(named(tensors, "fc.weight").spec, (TensorSpec{DType::BF16, {32, 16}}));
  EXPECT_EQ(named(tensors, "grad.fc.weight").kind, "parameter gradient");
  EXPECT_EQ(named(tensors, "y").owner, "act");
}

/// The GEMM adds the residual before it writes anything. The place is one that --without accepts.
TEST(CapturableTensors, NameTheFusionThatNeverStoresOne) {
  const Analysis analysis =
      analysed(chain(DType::BF16, {8, 16}, {linear(32, "fc"), link("AddExtraInput", "add"), link("RMSNorm", "norm")},
                     {.pass = ExecutionMode::Inference}));
  const CapturableTensor product = named(inFusedPlan(analysis), "fc:y");
  ASSERT_FALSE(product.isStored());
  EXPECT_EQ(product.fusedAway->fusion, "ForwardLinearEpilogue(fc, add)");
  EXPECT_EQ(product.fusedAway->place, "ForwardLinearEpilogue@fc");
  EXPECT_NE(neverStoredText(product).find("fc:y is never stored: ForwardLinearEpilogue(fc, add)"), std::string::npos);
  FusionOptions without;
  without.switches.without = {product.fusedAway->place};
  const auto rest = fuse(analysis.graph(), without);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_NE(toTree(analysis.graph(), *rest), toTree(analysis.graph(), analysis.report));
}

TEST(CapturableTensors, NameTheHandOverThatWritesOnlyCodes) {
  const Analysis analysis = normAndLinear("MXFP8BlockScaling");
  const std::vector<CapturableTensor> tensors = inFusedPlan(analysis);
  ASSERT_FALSE(named(tensors, "norm:y").isStored());
  EXPECT_EQ(named(tensors, "norm:y").fusedAway->place, "ForwardQuantize@norm");
  const CapturableTensor& copy = named(tensors, "fc.input@rowwise");
  EXPECT_TRUE(copy.isStored());
  EXPECT_EQ(copy.kind, "quantized copy");
  EXPECT_EQ(copy.owner, "fc");
  EXPECT_EQ(copy.spec, (TensorSpec{DType::BF16, {128, 256}})) << "of the numbers, not of the codes";
}

/// Forward fuses these ops, too.
TEST(CapturableTensors, NameTheFusionOfThePassThatMakesTheTensor) {
  const Analysis analysis =
      analysed(chain(DType::BF16, {8, 16}, {linear(32, "fc"), link("Bias", "bias"), link("SwiGLU", "act")}));
  const CapturableTensor gradient = named(inFusedPlan(analysis), "grad.bias:y");
  ASSERT_FALSE(gradient.isStored());
  EXPECT_EQ(gradient.fusedAway->place, "BackwardBiasSwiGLU@bias");
}

/// Both of its ops are in a forward fusion; backward makes it.
TEST(CapturableTensors, NameNoFusionOfTheOtherPass) {
  const Analysis analysis =
      analysed(chain(DType::BF16, {128, 64}, {linear(128, "fc"), link("Bias", "bias"), link("GELU", "act")}),
               "MXFP8BlockScaling");
  const CapturableTensor gradient = named(inFusedPlan(analysis), "grad.fc:y");
  ASSERT_FALSE(gradient.isStored());
  EXPECT_EQ(gradient.fusedAway->place, "BackwardQuantize@fc");
}

TEST(CapturableTensors, LeaveOutCopiesInTheHostsMemory) {
  const Analysis analysis =
      analysed(chain(DType::BF16, {8, 16}, {with(link("RMSNorm", "norm"), "cpu_offloading", true), linear(32, "fc")}));
  for (const CapturableTensor& tensor : inFusedPlan(analysis))
    EXPECT_EQ(namesOf(inFusedPlan(analysis)).count(tensor.name), 1U) << tensor.name;
  EXPECT_EQ(namesOf(inFusedPlan(analysis)),
            namesOf(inFusedPlan(analysed(chain(DType::BF16, {8, 16}, {link("RMSNorm", "norm"), linear(32, "fc")})))));
}

TEST(ChooseTensors, TakesNamesAndAllOfAnOp) {
  const Analysis analysis = linearAndGelu();
  const auto all = capturableTensors(analysis, analysis.unfusedPlan());
  const auto choice = chooseTensors(analysis.graph(), all, std::vector<std::string>{"y", "fc", "grad.x"});
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->tensors.front().name, "y");
  EXPECT_EQ(namesOf(choice->tensors),
            (std::set<std::string>{"y", "x", "fc.weight", "fc:y", "grad.fc:y", "grad.fc.weight", "grad.x"}));
  EXPECT_EQ(choice->tensors.size(), 7U) << "each once";
}

/// A view makes nothing, and yet has an input and an output.
TEST(ChooseTensors, KnowsTheTensorsOfViews) {
  const Analysis analysis =
      analysed(chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), link("GELU", "act")}));
  const auto all = capturableTensors(analysis, analysis.unfusedPlan());
  const auto choice = chooseTensors(analysis.graph(), all, std::vector<std::string>{"save"});
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_TRUE(namesOf(choice->tensors).contains("x"));
  EXPECT_TRUE(namesOf(choice->tensors).contains("save:y"));
}

TEST(ChooseTensors, OfAnOpSaysWhatIsMissing) {
  const Analysis analysis = normAndLinear("MXFP8BlockScaling");
  const auto all = inFusedPlan(analysis);
  const auto choice = chooseTensors(analysis.graph(), all, std::vector<std::string>{"norm"});
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_TRUE(namesOf(choice->tensors).contains("x"));
  EXPECT_EQ(namesOf(choice->missing), std::set<std::string>{"norm:y"});
  const auto refused = chooseTensors(analysis.graph(), all, std::vector<std::string>{"norm:y"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Usage);
}

TEST(ChooseTensors, SuggestsTheNearestName) {
  const Analysis analysis = linearAndGelu();
  const auto choice =
      chooseTensors(analysis.graph(), inFusedPlan(analysis), std::vector<std::string>{"grad.fc.wieght"});
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.error().message.find("did you mean grad.fc.weight?"), std::string::npos) << choice.error().message;
}

/// x has 8 * 16 elements of 2 bytes, fc.weight 32 * 16.
TEST(CheckCaptureSize, RefusesWithBothSizes) {
  const Analysis analysis = linearAndGelu();
  const auto all = capturableTensors(analysis, analysis.unfusedPlan());
  const auto choice = chooseTensors(analysis.graph(), all, std::vector<std::string>{"x", "fc.weight"});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->bytes(), 256 + 1024);
  EXPECT_TRUE(checkCaptureSize(*choice, 1280));
  const Result<void> refused = checkCaptureSize(*choice, 1024);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "2 tensors would take 1.25 KiB, but a capture may take 1 KiB; the largest, fc.weight, takes 1 KiB.");
}

}  // namespace
}  // namespace fuseline
