// NVRTC compiles generated code for every architecture of the module; needs the library, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/elementwise_source.h"
#include "kernels/cuda/nvrtc_compiler.h"
#include "tests/support/pipelines.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using namespace fuseline::testing;

/// Sources of every elementwise step of a plan.
std::vector<std::string> sourcesOf(const Graph& graph, int vector) {
  std::vector<std::string> sources;
  for (const Step& step : makePlan(graph, unfused(graph)).steps) {
    if (step.kernel != "elementwise" || step.isView) continue;
    const auto program = compileProgram(composeProgram(graph, step), [](const OperandKey&) { return DType::BF16; });
    EXPECT_TRUE(program) << program.error().message;
    sources.push_back(sourceOf(program->program, vector));
  }
  return sources;
}

class Nvrtc : public ::testing::TestWithParam<const char*> {};

TEST_P(Nvrtc, CompilesWhatIsGenerated) {
  const Graph graph = chain(DType::BF16, {4, 32},
                            {link("Bias"), link("SReLU"), with(link("Dropout"), "p", 0.25), link("ScaledSwiGLU"),
                             link("GELU"), link("Formula")});
  for (const int vector : {1, 8})
    for (const std::string& source : sourcesOf(graph, vector)) {
      const Result<std::vector<char>> cubin = compileToCubin(source, GetParam());
      if (!cubin && cubin.error().message.find("does not load") != std::string::npos)
        GTEST_SKIP() << cubin.error().message;
      EXPECT_TRUE(cubin) << cubin.error().message << "\n" << source;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Nvrtc, ::testing::Values("sm_90a", "sm_100a"),
                         [](const auto& test) { return std::string(test.param); });

TEST(NvrtcReport, NamesTheLineAtFault) {
  const Result<std::vector<char>> cubin = compileToCubin("nonsense", "sm_90a");
  ASSERT_FALSE(cubin);
  const std::string& message = cubin.error().message;
  if (message.find("does not load") != std::string::npos) GTEST_SKIP() << message;
  EXPECT_NE(message.find("elementwise.cu(1)"), std::string::npos) << message;
}

}  // namespace
}  // namespace fuseline::cuda
