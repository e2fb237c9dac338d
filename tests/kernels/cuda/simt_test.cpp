// The SIMT harness itself: indices, barriers, shuffles, and its refusals.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/include/cuda_runtime.h"
#include "tests/support/simt/include/kernels/cuda/stream/launch.h"
#include "tests/support/simt/include/kernels/cuda/stream/launch_cluster.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using cuda::launch;

void countThreads(int* counts) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  ++counts[y * gridDim.x * blockDim.x + x];
}

TEST(Simt, RunsEveryThreadOnce) {
  std::vector<int> counts(2 * 8 * 3 * 4);
  launch(countThreads, dim3(2, 3), dim3(8, 4), 0, nullptr, counts.data());
  EXPECT_EQ(counts, std::vector<int>(counts.size(), 1));
}

/// Every thread hands its value to the opposite one, several times.
void reverseTwice(int* values, int rounds) {
  __shared__ int shared[64];
  for (int round = 0; round < rounds; ++round) {
    shared[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
  }
}

TEST(Simt, BarriersOrderSharedMemory) {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<int> before = values;
  launch(reverseTwice, dim3(1), dim3(64), 0, nullptr, values.data(), 3);
  EXPECT_EQ(values, std::vector<int>(before.rbegin(), before.rend()));
}

/// The first thread hands its value to all others, which do not wait for it.
void broadcastAtOnce(int value, int* out) {
  __shared__ int shared;
  if (threadIdx.x == 0) shared = value;
  out[threadIdx.x] = shared;
}

void numberTurns(int* turns, int* next) { turns[blockIdx.x * blockDim.x + threadIdx.x] = (*next)++; }

std::vector<int> turnsOf(simt::Turns order, std::uint64_t seed = 0) {
  const simt::TurnsInScope scope(order, seed);
  std::vector<int> turns(3 * 8);
  int next = 0;
  launch(numberTurns, dim3(3), dim3(8), 0, nullptr, turns.data(), &next);
  return turns;
}

TEST(Simt, TakesTurnsAsATestWants) {
  std::vector<int> ascending(3 * 8);
  std::iota(ascending.begin(), ascending.end(), 0);
  EXPECT_EQ(turnsOf(simt::Turns::Ascending), ascending);
  EXPECT_EQ(turnsOf(simt::Turns::Descending), std::vector<int>(ascending.rbegin(), ascending.rend()));
  const std::vector<int> random = turnsOf(simt::Turns::Random, 1);
  EXPECT_EQ(random, turnsOf(simt::Turns::Random, 1));
  EXPECT_NE(random, turnsOf(simt::Turns::Random, 2));
  EXPECT_NE(random, ascending);
  EXPECT_TRUE(std::ranges::is_permutation(random, ascending));
}

TEST(Simt, OtherTurnsShowThatABarrierIsMissing) {
  const auto isBroadcast = [](simt::Turns turns, int value) {
    const simt::TurnsInScope scope(turns, 1);
    std::vector<int> out(64);
    launch(broadcastAtOnce, dim3(1), dim3(64), 0, nullptr, value, out.data());
    return out == std::vector<int>(64, value);
  };
  EXPECT_TRUE(isBroadcast(simt::Turns::Ascending, 1));
  EXPECT_FALSE(isBroadcast(simt::Turns::Descending, 2));
  EXPECT_FALSE(isBroadcast(simt::Turns::Random, 3));
}

void accessAt(const std::byte* address) { FUSELINE_READS(address, 16); }

TEST(SimtDeathTest, EndsWhereADeviceWouldFault) {
  alignas(16) std::byte bytes[32] = {};
  launch(accessAt, dim3(1), dim3(1), 0, nullptr, &bytes[16]);
  EXPECT_DEATH(launch(accessAt, dim3(2), dim3(3), 0, nullptr, &bytes[8]), "thread \\(0, 0\\): an access of 16 bytes");
}

void addPacket(const float* from, float* to) {
  for (int again = 0; again < 2; ++again) {
    FUSELINE_READS(from, 16);
    FUSELINE_WRITES(to, 16);
  }
}

TEST(Simt, CountsWhatAGridMovesOnce) {
  alignas(64) float memory[24] = {};
  launch(addPacket, dim3(1), dim3(1), 0, nullptr, &memory[0], &memory[0]);
  const simt::CountedTraffic counted;
  launch(addPacket, dim3(3), dim3(2), 0, nullptr, &memory[0], &memory[16]);
  EXPECT_EQ(counted.bytes(), 64u) << "a sector of each";
  launch(addPacket, dim3(1), dim3(1), 0, nullptr, &memory[0], &memory[4]);
  EXPECT_EQ(counted.bytes(), 128u) << "the same one, both ways, of another grid";
}

void sumOfWarps(float* out) {
  float value = static_cast<float>(threadIdx.x);
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  out[threadIdx.x] = value;
}

TEST(Simt, ShufflesStayInTheirWarp) {
  std::vector<float> sums(96);
  launch(sumOfWarps, dim3(1), dim3(96), 0, nullptr, sums.data());
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(sums[i], static_cast<float>(496 + 1024 * (i / 32))) << "thread " << i;
}

void returnEarly() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}

void waitElsewhere() {
  if (threadIdx.x % 2 == 0)
    __syncthreads();
  else
    __syncthreads();
}

void shuffleAlone(float* out) {
  if (threadIdx.x < 7) out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0F, 1);
}

template <class Run>
std::string divergenceOf(Run run) {
  try {
    run();
  } catch (const simt::DivergenceError& error) {
    return error.what();
  }
  return "";
}

TEST(Simt, NamesTheThreadThatSkipsABarrier) {
  const std::string words = divergenceOf([] { launch(returnEarly, dim3(1), dim3(8), 0, nullptr); });
  EXPECT_NE(words.find("thread 5 has returned"), std::string::npos) << words;
  EXPECT_NE(words.find("simt_test.cpp"), std::string::npos) << words;
}

TEST(Simt, TellsBarriersApart) {
  const std::string words = divergenceOf([] { launch(waitElsewhere, dim3(1), dim3(8), 0, nullptr); });
  EXPECT_NE(words.find("thread 0 waits at"), std::string::npos) << words;
  EXPECT_NE(words.find("thread 1 waits at"), std::string::npos) << words;
}

TEST(Simt, RefusesShufflesOfPartOfAWarp) {
  std::vector<float> out(8);
  EXPECT_NE(divergenceOf([&] { launch(shuffleAlone, dim3(1), dim3(8), 0, nullptr, out.data()); }), "");
}

TEST(Simt, EndsARecordingThatThrows) {
  const auto fail = [] {
    EXPECT_TRUE(simt::isRecording());
    throw std::runtime_error("no");
  };
  EXPECT_THROW(simt::record(fail), std::runtime_error);
  EXPECT_FALSE(simt::isRecording());
}

TEST(Simt, RefusesGridsThatNoDeviceTakes) {
  std::vector<int> counts(1);
  EXPECT_THROW(launch(countThreads, dim3(1, 65536), dim3(1), 0, nullptr, counts.data()), std::invalid_argument);
  EXPECT_THROW(launch(countThreads, dim3(1), dim3(2048), 0, nullptr, counts.data()), std::invalid_argument);
  EXPECT_THROW(launch(countThreads, dim3(0), dim3(32), 0, nullptr, counts.data()), std::invalid_argument);
}

/// Every thread hands a number to its counterpart in the next block of the cluster.
void handOn(float* out, bool isAwaited) {
  float* const shared = simt::dynamicShared();
  const unsigned rank = blockIdx.x % 4;
  shared[threadIdx.x] = static_cast<float>(blockIdx.x * 100 + threadIdx.x);
  cuda::syncCluster();
  if (!isAwaited && rank == 0) return;
  out[blockIdx.x * blockDim.x + threadIdx.x] = *cuda::inBlock((rank + 1) % 4, shared + threadIdx.x);
  if (isAwaited) cuda::syncCluster();
}

std::vector<float> handedOn(simt::Turns turns, bool isAwaited) {
  const simt::TurnsInScope scope(turns, 1);
  std::vector<float> out(2 * 4 * 40, -1.0F);
  simt::runGrid(
      dim3(8), dim3(40), [&] { handOn(out.data(), isAwaited); }, 40 * sizeof(float), 4);
  return out;
}

TEST(Simt, BlocksOfAClusterReadEachOthersMemory) {
  for (const simt::Turns turns : {simt::Turns::Ascending, simt::Turns::Descending, simt::Turns::Random}) {
    const std::vector<float> out = handedOn(turns, true);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t block = i / 40;
      const std::size_t next = block / 4 * 4 + (block + 1) % 4;
      EXPECT_EQ(out[i], static_cast<float>(next * 100 + i % 40)) << "thread " << i;
    }
  }
}

/// Block 3 reads the memory of block 0, which has returned.
TEST(Simt, ABlockThatHasEndedHasNoMemory) { EXPECT_TRUE(std::isnan(handedOn(simt::Turns::Ascending, false)[3 * 40])); }

void waitForOneBlock() {
  if (blockIdx.x == 1) cuda::syncCluster();
}

TEST(Simt, NamesTheBlockThatSkipsABarrierOfItsCluster) {
  const std::string words = divergenceOf([] { cuda::launchInClusters(waitForOneBlock, dim3(2), dim3(3), 0, nullptr); });
  EXPECT_NE(words.find("Block (1, 0, 0): thread 0 waits at"), std::string::npos) << words;
  EXPECT_NE(words.find("thread 0 of block (0, 0, 0) has returned"), std::string::npos) << words;
}

TEST(Simt, RefusesClustersThatNoDeviceTakes) {
  EXPECT_THROW(simt::runGrid(
                   dim3(34), dim3(1), [] {}, 0, 17),
               std::invalid_argument);
  EXPECT_THROW(simt::runGrid(
                   dim3(6), dim3(1), [] {}, 0, 4),
               std::invalid_argument);
}

float declaredOnce = 0.0F;
void readAnotherVariable() { (void)cuda::inBlock(0, &declaredOnce); }

TEST(SimtDeathTest, OnlyDynamicMemoryHasCounterparts) {
  EXPECT_DEATH(cuda::launchInClusters(readAnotherVariable, dim3(2), dim3(1), 16, nullptr),
               "Only dynamic shared memory");
}

}  // namespace
}  // namespace fuseline
