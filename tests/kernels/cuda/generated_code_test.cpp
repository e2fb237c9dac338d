// Generated elementwise code, compiled by the host's compiler, computes the interpreter's results, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "kernels/cuda/elementwise/elementwise_source.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/host_compiler.h"
#include "tests/support/simt/simt_backend.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Fails where a program was interpreted after all.
class StrictCompiler final : public cuda::ProgramCompiler {
 public:
  Result<std::shared_ptr<const cuda::CompiledProgram>> compile(const std::string& source) override {
    ++m_numAsked;
    auto compiled = m_inner->compile(source);
    EXPECT_TRUE(compiled) << compiled.error().message;
    return compiled;
  }
  int numAsked() const { return m_numAsked; }

 private:
  std::unique_ptr<cuda::ProgramCompiler> m_inner = makeHostCompiler();
  int m_numAsked = 0;
};

void expectSameAsInterpreted(const Graph& graph) {
  StrictCompiler compiler;
  const RunResults generated = runPlan(graph, unfused(graph), makeSimtBackend(&compiler));
  EXPECT_GT(compiler.numAsked(), 0);
  EXPECT_EQ(generated, runPlan(graph, unfused(graph), makeSimtBackend())) << toString(graph);
}

TEST(GeneratedCode, OfAGateAndADropoutIsWhatIsInterpreted) {
  expectSameAsInterpreted(chain(DType::BF16, {5, 32}, {link("SwiGLU"), with(link("Dropout"), "p", 0.25)}));
}

TEST(GeneratedCode, OfSumsIsWhatIsInterpreted) {
  expectSameAsInterpreted(chain(DType::F16, {9, 34}, {link("Bias"), link("ScaledSwiGLU")}));
}

TEST(GeneratedCode, OfAFormulaIsWhatIsInterpreted) {
  expectSameAsInterpreted(chain(DType::F32, {3, 7}, {link("Formula"), link("GELU"), link("ReLU")}));
}

/// The activation finds the amax of its input only where it is compiled. Packets, shifted rows and both lanes of a
/// gate.
TEST(GeneratedCode, OfAnInputThatIsKeptInE4m3IsWhatIsInterpreted) {
  for (const Shape& shape : {Shape{70, 272}, Shape{33, 62}, Shape{5, 2}})
    for (const char* const activation : {"SiLU", "SwiGLU"})
      expectSameAsInterpreted(chain(DType::BF16, shape, {with(link(activation), "cache_quantized_input", true)}));
}

TEST(GeneratedCode, OfGroupsIsWhatIsInterpreted) {
  const Link experts = with(with(link("GroupedLinear"), "num_groups", std::int64_t{3}), "scale_bias", true);
  expectSameAsInterpreted(chain(DType::BF16, {9, 16}, {with(experts, "out_features", std::int64_t{24})}));
}

TEST(GeneratedCode, HoldsConstantsBitForBit) {
  cuda::device::Program program;
  program.code[0] = {.opcode = cuda::device::Opcode::Constant, .constant = 0.1F};
  program.numInstructions = 1;
  EXPECT_NE(cuda::sourceOf(program, {.vector = 8}).find("0x3dcccccd"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
