// Opens cuBLASLt as the module does; needs the library, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/shared_library.h"

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

TEST(SharedLibrary, NamesTheFunctionThatIsMissing) {
  Symbols symbols(nullptr);
  void (*function)() = nullptr;
  symbols.find(function, "nobodyHasThisFunction");
  EXPECT_EQ(symbols.missing(), "nobodyHasThisFunction");
}

}  // namespace
}  // namespace fuseline::cuda
