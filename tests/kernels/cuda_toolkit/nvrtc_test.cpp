// NVRTC compiles generated code for every architecture of the module; needs the library, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/elementwise/elementwise_source.h"
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/simt_backend.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using namespace fuseline::testing;

/// Sources of every elementwise step of a plan.
std::vector<std::string> sourcesOf(const Graph& graph, const ElementwiseShape& shape) {
  std::vector<std::string> sources;
  for (const Step& step : makePlan(graph, unfused(graph)).steps) {
    if (step.kernel != "elementwise" || step.isView) continue;
    const auto program = compileProgram(composeProgram(graph, step), [](const OperandKey&) { return DType::BF16; });
    EXPECT_TRUE(program) << program.error().message;
    sources.push_back(sourceOf(program->program, shape));
  }
  return sources;
}

/// Records its arguments and leaves the program to the interpreter.
class RecordingCompiler final : public ProgramCompiler {
 public:
  Result<std::shared_ptr<const CompiledProgram>> compile(const std::string& source) override {
    m_sources.push_back(source);
    return Error{"Only written down."};
  }
  const std::vector<std::string>& sources() const { return m_sources; }

 private:
  std::vector<std::string> m_sources;
};

/// Sources of programs that quantize their results, or find their amaxes, forward and backward.
std::vector<std::string> handingSourcesOf(const char* recipe, const std::vector<Link>& links) {
  const Graph graph = chain(DType::BF16, {128, 256}, links, {.recipe = recipe});
  RecordingCompiler compiler;
  const auto backend = makeSimtBackend(&compiler);
  const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backend)}));
  EXPECT_TRUE(Executor::create(backend, graph, makePlan(graph, report), *makeBindings(graph, 1)));
  std::vector<std::string> handing;
  for (const std::string& source : compiler.sources())
    if (source.find("arguments.quantizedOutputs") != std::string::npos) handing.push_back(source);
  return handing;
}

class Nvrtc : public ::testing::TestWithParam<const char*> {};
class NvrtcTiles : public Nvrtc {};

TEST_P(Nvrtc, CompilesWhatIsGenerated) {
  const Graph graph = chain(DType::BF16, {4, 32},
                            {link("Bias"), link("SReLU"), with(link("Dropout"), "p", 0.25), link("ScaledSwiGLU"),
                             link("GELU"), link("Formula")});
  for (const ElementwiseShape& shape :
       {ElementwiseShape{.vector = 1}, ElementwiseShape{.vector = 8}, {.vector = 8, .isShifted = true}})
    for (const std::string& source : sourcesOf(graph, shape)) {
      const Result<std::vector<char>> cubin = compileToCubin(source, GetParam(), true);
      if (!cubin && cubin.error().message.find("does not load") != std::string::npos)
        GTEST_SKIP() << cubin.error().message;
      EXPECT_TRUE(cubin) << cubin.error().message << "\n" << source;
    }
}

/// A tile of a thread lies in registers, or it is of no use.
TEST_P(NvrtcTiles, LieInRegisters) {
  if (const Verdict isThere = hasNvrtc(); !isThere) GTEST_SKIP() << isThere.reason();
  for (const char* recipe : {"DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling"})
    for (const char* activation : {"GELU", "SwiGLU"}) {
      const std::vector<std::string> sources =
          handingSourcesOf(recipe, {linear(256), link("Bias"), link(activation), link("Dropout"), linear(128)});
      EXPECT_EQ(sources.size(), 2u) << activation;
      for (const std::string& source : sources) {
        const Result<std::vector<char>> cubin = compileToCubin(source, GetParam(), true);
        EXPECT_TRUE(cubin) << recipe << ", " << activation << ": " << cubin.error().message << "\n" << source;
      }
    }
}

const auto nameOf = [](const auto& test) { return std::string(test.param); };
INSTANTIATE_TEST_SUITE_P(Architectures, Nvrtc, ::testing::Values("sm_80", "sm_89", "sm_90", "sm_100", "sm_120"),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcTiles, ::testing::Values("sm_80", "sm_90", "sm_120"), nameOf);

/// For a later GPU, for which the driver produces the machine code.
TEST(NvrtcTarget, IsPtxWhereThereIsNoMachineCode) {
  if (const Verdict isThere = hasNvrtc(); !isThere) GTEST_SKIP() << isThere.reason();
  for (const auto& [gpu, target] :
       {std::pair{ComputeCapability{8, 0}, "sm_80"}, {{9, 0}, "sm_90"}, {{12, 1}, "sm_121"}})
    EXPECT_EQ(nvrtcTarget(gpu), target);
  const std::string later = nvrtcTarget({99, 0});
  EXPECT_TRUE(later.starts_with("compute_")) << later;
  const Result<std::vector<char>> ptx = compileToCubin("extern \"C\" __global__ void nothing() {}", later);
  ASSERT_TRUE(ptx) << ptx.error().message;
  EXPECT_NE(std::string_view(ptx->data(), ptx->size()).find(".visible .entry nothing"), std::string_view::npos);
}

TEST(NvrtcReport, NamesTheLineAtFault) {
  const Result<std::vector<char>> cubin = compileToCubin("nonsense", "sm_90");
  ASSERT_FALSE(cubin);
  const std::string& message = cubin.error().message;
  if (message.find("does not load") != std::string::npos) GTEST_SKIP() << message;
  EXPECT_NE(message.find("elementwise.cu(1)"), std::string::npos) << message;
}

}  // namespace
}  // namespace fuseline::cuda
