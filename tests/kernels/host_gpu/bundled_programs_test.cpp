// Programs that were compiled beforehand are loaded where there is no NVRTC.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "kernels/cuda/elementwise/program_cache.h"
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/temporary_folder.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

class BundledPrograms : public ::testing::Test {
 protected:
  void bundle(const std::string& source, const std::string& architecture, char code) const {
    ProgramCache(bundled(), bundledOrigin(architecture)).keep(source, {code});
  }
  std::unique_ptr<PreparingCompiler> compiler() {
    return makeNvrtcCompiler("sm_90", {.kept = {}, .bundled = bundled()},
                             [this](const Error& error) { m_refusals.push_back(error.message); });
  }
  std::filesystem::path bundled() const { return m_folder.path() / "programs"; }

  testing::TemporaryFolder m_folder;
  std::vector<std::string> m_refusals;
};

TEST_F(BundledPrograms, AreLoadedWithoutNvrtc) {
  bundle("a", "sm_90", host_gpu::kLoadedProgram);
  const auto programs = compiler();
  programs->prepare({"a", "b"});
  const auto loaded = programs->compile("a");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, *programs->compile("a"));
  EXPECT_EQ(m_refusals, std::vector<std::string>());
}

TEST_F(BundledPrograms, OfOtherSourcesAndOtherGpusAreNot) {
  bundle("a", "sm_90", host_gpu::kLoadedProgram);
  bundle("b", "sm_100", host_gpu::kLoadedProgram);
  const auto programs = compiler();
  EXPECT_FALSE(programs->compile("b"));
  EXPECT_FALSE(programs->compile("c"));
  EXPECT_EQ(m_refusals.size(), 2U);
}

TEST_F(BundledPrograms, ThatTheDeviceRefusesAreCompiled) {
  bundle("a", "sm_90", 'x');
  EXPECT_FALSE(compiler()->compile("a"));
  EXPECT_EQ(m_refusals, std::vector<std::string>{hasNvrtc().reason()});
}

}  // namespace
}  // namespace fuseline::cuda
