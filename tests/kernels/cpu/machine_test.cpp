// Memory, threads, and peak bandwidth and FLOP/s.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/cache_filler.h"
#include "kernels/cpu/machine/cpu_info.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/machine/peaks.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

TEST(CpuMemory, IsZeroAlignedAndAsLargeAsWished) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5} << 20}) {
    auto memory = allocateCpuMemory(size);
    ASSERT_TRUE(memory);
    EXPECT_EQ((*memory)->sizeBytes(), size);
    std::byte* const data = (*memory)->data();
    EXPECT_EQ(reinterpret_cast<std::size_t>(data) % 64, 0u);
    EXPECT_TRUE(std::all_of(data, data + size, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(data, size, std::byte{1});
  }
}

TEST(CpuMemory, RefusesWhatNoMachineHasWithASentence) {
  const auto memory = allocateCpuMemory(std::size_t{1} << 60);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::RunFailed);
  EXPECT_NE(memory.error().message.find("memory"), std::string::npos);
}

TEST(CpuInfo, NamesTheCpuAndItsThreads) {
  EXPECT_GE(availableCores(), 1);
  const DeviceInfo info = describeCpu(3);
  EXPECT_NE(info.name.find("3 threads"), std::string::npos) << info.name;
  EXPECT_FALSE(info.details.empty());
}

TEST(CacheFiller, WritesTwiceWhatALastCacheHolds) {
  EXPECT_GT(lastLevelCacheBytes(), std::int64_t{1} << 19);
  auto filler = makeCacheFiller(2);
  ASSERT_TRUE(filler) << filler.error().message;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*filler)->fill());
}

TEST(Peaks, AreMeasuredAndFollowTheInstructions) {
  const DevicePeaks peaks = measurePeaks(1);
  EXPECT_GT(peaks.copyGBps, 0.0);
  EXPECT_GT(peaks.fmaF32Gflops, 0.0);
  EXPECT_EQ(peaks.bf16Gflops > 0.0, __builtin_cpu_supports("avx512bf16") != 0);
}

}  // namespace
}  // namespace fuseline::cpu
