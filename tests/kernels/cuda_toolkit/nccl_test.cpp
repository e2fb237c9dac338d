// Opens NCCL as the module does; needs the library, no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/nccl.h"

#include <cstddef>

#include <gtest/gtest.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#define FUSELINE_HAS_NCCL_HEADER
#endif

namespace fuseline::cuda {
namespace {

#ifdef FUSELINE_HAS_NCCL_HEADER
static_assert(static_cast<int>(NcclType::Uint8) == ncclUint8 && static_cast<int>(NcclType::Float16) == ncclFloat16);
static_assert(static_cast<int>(NcclType::Float32) == ncclFloat32);
static_assert(static_cast<int>(NcclType::Bfloat16) == ncclBfloat16);
static_assert(static_cast<int>(NcclReduction::Sum) == ncclSum && static_cast<int>(NcclReduction::Max) == ncclMax);
static_assert(static_cast<int>(NcclStatus::SystemError) == ncclSystemError);
static_assert(static_cast<int>(NcclStatus::InvalidUsage) == ncclInvalidUsage);
static_assert(static_cast<int>(NcclStatus::RemoteError) == ncclRemoteError);
static_assert(static_cast<int>(NcclStatus::InProgress) == ncclInProgress);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) && sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(offsetof(NcclConfig, isBlocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, splitShare) == offsetof(ncclConfig_t, splitShare));
#endif

TEST(Nccl, HasEveryFunctionThatRanksCall) {
  const Result<Nccl> library = loadNccl();
  if (!library && library.error().message.find("does not load") != std::string::npos) {
    EXPECT_NE(library.error().message.find("pip install nvidia-nccl-cu"), std::string::npos);
    GTEST_SKIP() << library.error().message;
  }
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_TRUE(checkVersion(*library));
  EXPECT_NE(library->path.find("libnccl.so.2"), std::string::npos) << library->path;
}

TEST(Nccl, OldVersionsAreRefusedWithBothNumbers) {
  const Nccl old{.version = [](int* version) { return *version = 21803, NcclStatus::Success; }, .path = "libnccl.so.2"};
  const Result<void> fits = checkVersion(old);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().kind, ErrorKind::NoDevice);
  EXPECT_NE(fits.error().message.find("libnccl.so.2 is NCCL 2.18.3, expected 2.19.0 or newer."), std::string::npos)
      << fits.error().message;
}

}  // namespace
}  // namespace fuseline::cuda
