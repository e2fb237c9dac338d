// Opens cuBLASLt as the module does; needs the library, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt.h"
#include "kernels/cuda/support/shared_library.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

TEST(CublasLt, HasEveryFunctionThatTheBackendCalls) {
  const Result<CublasLt> library = loadCublasLt();
  if (!library && library.error().message.find("does not load") != std::string::npos)
    GTEST_SKIP() << library.error().message;
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_GE(library->version(), std::size_t{CUBLAS_VER_MAJOR} * 10000);
}

TEST(SharedLibrary, SaysWhichLibraryIsMissingAndWhatToDo) {
  const Result<void*> library = openLibrary("libnobody_has_this.so.1");
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().message.find("libnobody_has_this.so.1"), std::string::npos);
  EXPECT_NE(library.error().message.find("LD_LIBRARY_PATH"), std::string::npos);
}

TEST(SharedLibrary, IsLookedForInToolkitsAndInTheActivePython) {
  const testing::TemporaryFolder python;
  const auto packages = python.path() / "lib/python3.12/site-packages/nvidia/cu13/lib";
  const auto cudnn = python.path() / "lib/python3.12/site-packages/nvidia/cudnn/lib";
  const auto nccl = python.path() / "lib/python3.12/dist-packages/nvidia/nccl/lib";
  std::filesystem::create_directories(packages);
  const std::map<std::string, std::string> variables = {{"CUDA_HOME", "/opt/cuda"},
                                                        {"VIRTUAL_ENV", python.path().string()}};
  const auto environment = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const std::vector<std::string> folders = toolkitFolders(environment, 13);
  EXPECT_EQ(folders.front(), "/opt/cuda/lib64");
  for (const std::string& folder :
       {std::string("/opt/cuda/extras/CUPTI/lib64"), std::string("/usr/local/cuda/lib64"),
        std::string("/usr/local/cuda-13/lib64"), packages.string(), cudnn.string(), nccl.string()})
    EXPECT_NE(std::ranges::find(folders, folder), folders.end()) << folder;
}

TEST(SharedLibrary, IsFoundBesideAnother) {
  const Result<void*> none = openBeside(reinterpret_cast<const void*>(&dlopen), "libnobody_has_this.so.1");
  EXPECT_FALSE(none);
  const Result<void*> library = openBeside(reinterpret_cast<const void*>(&dlopen), "libm.so.6");
  EXPECT_TRUE(library) << library.error().message;
}

TEST(SharedLibrary, NamesTheFunctionThatIsMissing) {
  Symbols symbols(nullptr);
  void (*function)() = nullptr;
  symbols.find(function, "nobodyHasThisFunction");
  EXPECT_EQ(symbols.missing(), "nobodyHasThisFunction");
}

}  // namespace
}  // namespace fuseline::cuda
