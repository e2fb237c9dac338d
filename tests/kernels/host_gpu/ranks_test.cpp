// Ranks on several GPUs of host memory compute what one rank computes, and end together.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/lone_rank.h"
#include "core/tensor/random_tensor.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/machine/discovery.h"
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/host_gpu/nccl.h"
#include "tests/support/ranked_layers.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kRows = 24;
constexpr std::int64_t kWidth = 48;
constexpr std::int64_t kHidden = 24;

/// GPUs of this number while it lives.
class Gpus {
 public:
  explicit Gpus(int count) : m_before(host_gpu::setNumDevices(count)) {}
  ~Gpus() { host_gpu::setNumDevices(m_before); }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  static std::vector<std::shared_ptr<Backend>> open(int count, int step = 1) {
    std::vector<std::shared_ptr<Backend>> backends;
    for (int rank = 0; rank < count; ++rank)
      backends.push_back(
          *cuda::makeCudaBackend(rank * step, cuda::discoverDevices()[static_cast<std::size_t>(rank * step)].info));
    return backends;
  }

 private:
  int m_before;
};

Graph layers(DType dtype, std::uint64_t seed, bool isSequenceParallel) {
  return chain(dtype, {kRows, kWidth}, randomParallelLayers(seed, isSequenceParallel, kWidth, kHidden));
}

class GpuRanks : public ::testing::TestWithParam<std::tuple<int, SumOrder>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  SumOrder order() const { return std::get<1>(GetParam()); }
};

/// Three runs: step by step, captured, and replayed.
TEST_P(GpuRanks, ComputeWhatOneRankComputes) {
  const Gpus gpus(ranks());
  const std::shared_ptr<Backend> reference = makeReferenceBackend();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const DType dtype = seed < 2 ? DType::F32 : DType::BF16;
    const Graph whole = layers(dtype, seed, seed % 2 == 0);
    const RunResults expected = runPlan(whole, unfused(whole), reference);
    const RankedRun actual =
        runOnRanks(whole, Gpus::open(ranks()),
                   {.isFused = seed == 0, .order = order(), .numRuns = 3, .chunks = seed % 2 == 0 ? 2 : 1});
    ASSERT_EQ(actual.problem, "") << toString(whole);
    EXPECT_EQ(actual.launching, "captured and replayed");
    EXPECT_EQ(dtype == DType::F32 ? firstDifference(actual.results, expected, 1e-4)
                                  : firstDifferenceInNorm(actual.results, expected, 3e-2),
              "")
        << "seed " << seed << "\n"
        << toString(whole);
  }
  EXPECT_EQ(host_gpu::numCommunicators(), 0u);
  EXPECT_GT(host_gpu::numReplayedCollectives(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Counts, GpuRanks,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values(SumOrder::Library, SumOrder::Ranks)),
                         [](const auto& given) {
                           return std::to_string(std::get<0>(given.param)) +
                                  (std::get<1>(given.param) == SumOrder::Ranks ? "InRankOrder" : "ByLibrary");
                         });

/// Gathers carry encoded values. Shards of weights have scales of their own: results differ by the errors of the
/// formats.
class GpuRanksUnder : public ::testing::TestWithParam<const RecipeDefinition*> {};

TEST_P(GpuRanksUnder, RecipesComputeWhatOneRankComputes) {
  constexpr int kRanks = 2;
  const Gpus gpus(kRanks);
  const Recipe chosen = recipe(GetParam()->name);
  const Graph whole = chain(DType::BF16, {256, 128},
                            {link("RMSNorm", "norm"), parallel(linear(256, "up"), "column", true), link("GELU", "act"),
                             parallel(linear(128, "down"), "row", true)});
  for (const bool isFused : {false, true}) {
    RankedRunOptions options{.isFused = isFused, .order = SumOrder::Ranks, .recipe = chosen, .numRuns = 3};
    const RankedRun one = runOnOneRank(whole, Gpus::open(1).front(), options);
    const RankedRun several = runOnRanks(whole, Gpus::open(kRanks), options);
    options.chunks = 2;
    const RankedRun inChunks = runOnRanks(whole, Gpus::open(kRanks), options);
    ASSERT_EQ(one.problem + several.problem + inChunks.problem, "");
    EXPECT_EQ(several.launching, "captured and replayed");
    const double tolerance = chosen.name() == "NVFP4BlockScaling" ? 0.4 : 0.12;
    EXPECT_EQ(firstDifferenceInNorm(several.results, one.results, tolerance), "");
    // Other bits: an algorithm may be chosen for pieces that rounds before the activation.
    EXPECT_EQ(firstDifferenceInNorm(inChunks.results, several.results, tolerance / 2), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuRanksUnder, ::testing::ValuesIn(quantizingRecipes()),
                         [](const auto& given) { return given.param->name; });

/// The mask is that of the whole tensor, of which a rank has any elements: its slice may begin within a block of random
/// numbers.
TEST(GpuRanks, DropTheElementsOfTheirSlices) {
  const Gpus gpus(2);
  for (const std::int64_t width : {6, 10, 16}) {
    const Graph whole = chain(DType::F32, {6, width},
                              {parallel(linear(8, "up"), "column", true), parallel(linear(width, "down"), "row", true),
                               with(link("Dropout", "drop"), "p", 0.5)});
    const RankedRun actual = runOnRanks(whole, Gpus::open(2));
    ASSERT_EQ(actual.problem, "");
    EXPECT_EQ(firstDifference(actual.results, runPlan(whole, unfused(whole), makeReferenceBackend()), 1e-4), "")
        << width;
  }
}

TEST(GpuRanks, DropTheElementsOfTheWholeInPiecesOfAGemm) {
  const Gpus gpus(2);
  const Graph whole = chain(DType::F32, {24, 48},
                            {link("GELU", "act"), link("AllGather", "gather"), linear(40, "fc"), link("Bias", "bias"),
                             with(link("Dropout", "drop"), "p", 0.5)});
  const RankedRun inChunks = runOnRanks(whole, Gpus::open(2), {.isFused = true, .chunks = 4});
  const RankedRun atOnce = runOnRanks(whole, Gpus::open(2), {.isFused = true});
  ASSERT_EQ(inChunks.problem + atOnce.problem, "");
  EXPECT_EQ(firstDifference(inChunks.results, atOnce.results, 0.0), "");
}

/// Every collective of sums, of sizes that ranks cannot share equally, against the sum in rank order.
TEST(GpuRanks, DeterministicSumsHaveTheBitsOfTheHosts) {
  constexpr int kRanks = 3;
  const Gpus gpus(kRanks);
  const auto backends = Gpus::open(kRanks);
  RankTeam team(kRanks), host(kRanks);
  std::vector<RankResources> ranks;
  for (const auto& backend : backends) ranks.push_back({backend, nullptr, {}});
  ASSERT_TRUE(joinRanks(team, ranks, SumOrder::Ranks));
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const std::int64_t count : {1, 2, 7, 300}) {
      std::vector<Tensor> sums(kRanks), expected(kRanks);
      const Result<void> ran = team.run([&](int rank) -> Result<void> {
        const Tensor own = randomNormal({.dtype = dtype, .shape = {count}}, 5, "rank" + std::to_string(rank));
        Tensor& sum = sums[static_cast<std::size_t>(rank)] = Tensor::zeros(own.spec);
        Backend& backend = *backends[static_cast<std::size_t>(rank)];
        const auto memory = backend.allocate(own.data.size());
        std::byte* const data = (*memory)->data();
        backend.upload(data, own.data);
        const CollectivePart part{dtype, count, data, data};
        const Collective call{.kind = CollectiveKind::AllReduce, .name = "sums", .parts = {&part, 1}};
        Communicator& communicator = *ranks[static_cast<std::size_t>(rank)].communicator;
        communicator.prepare(call);
        communicator.run(call);
        backend.download(sum.data, data);
        return {};
      });
      ASSERT_TRUE(ran) << ran.error().message;
      ASSERT_TRUE(host.run([&](int rank) -> Result<void> {
        Tensor& own = expected[static_cast<std::size_t>(rank)] =
            randomNormal({.dtype = dtype, .shape = {count}}, 5, "rank" + std::to_string(rank));
        const CollectivePart part{dtype, count, own.data.data(), own.data.data()};
        host.communicator(rank).run({.kind = CollectiveKind::AllReduce, .name = "sums", .parts = {&part, 1}});
        return {};
      }));
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(sums[rank].data, expected[rank].data) << dtypeName(dtype) << " " << count;
    }
  partRanks(team, ranks);
}

TEST(GpuRanks, SayWhichLibraryAndWhichSums) {
  const Gpus gpus(2);
  const RankedRun run = runOnRanks(layers(DType::F32, 1, true), Gpus::open(2));
  EXPECT_EQ(run.problem, "");
  ASSERT_GE(run.details.size(), 3u);
  EXPECT_EQ(run.details[0].second, "NCCL 2.28.9");
  EXPECT_EQ(run.details[1].second, "libnccl.so.2 of host memory");
  EXPECT_NE(run.details[2].second.find("NCCL's order"), std::string::npos);
}

double secondsOf(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The others wait in collectives that never end, in the first run or in a replayed one.
TEST(GpuRanks, ARankWhoseLibraryFailsIsNamedAndEndsTheOthers) {
  const Gpus gpus(3);
  for (const int collectives : {0, 3, 20}) {
    host_gpu::failInCollective(1, collectives);
    RankedRun run;
    const double seconds =
        secondsOf([&] { run = runOnRanks(layers(DType::F32, 0, true), Gpus::open(3), {.numRuns = 8}); });
    EXPECT_TRUE(run.problem.starts_with("rank 1 of 3: ")) << run.problem;
    EXPECT_NE(run.problem.find("NCCL could not complete a collective: unhandled system error"), std::string::npos)
        << run.problem;
    EXPECT_LT(seconds, 10.0);
    EXPECT_EQ(host_gpu::numCommunicators(), 0u);
  }
}

/// A rank that fails by itself, while the others have launched collectives with it.
TEST(GpuRanks, ARankThatNeverComesIsNamedAndEndsTheOthers) {
  const Gpus gpus(3);
  const auto backends = Gpus::open(3);
  RankTeam team(3);
  std::vector<RankResources> ranks;
  for (const auto& backend : backends) ranks.push_back({backend, nullptr, {}});
  ASSERT_TRUE(joinRanks(team, ranks, SumOrder::Library));
  const Result<void> ran = team.run([&](int rank) -> Result<void> {
    if (rank == 2) return Error{"fc2.linear (forward): no memory.", ErrorKind::RunFailed};
    Backend& backend = *backends[static_cast<std::size_t>(rank)];
    const auto memory = backend.allocate(64);
    const CollectivePart part{DType::F32, 16, (*memory)->data(), (*memory)->data()};
    ranks[static_cast<std::size_t>(rank)].communicator->run(
        {.kind = CollectiveKind::AllReduce, .name = "sums", .parts = {&part, 1}});
    backend.synchronize();
    return {};
  });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().message, "rank 2 of 3: fc2.linear (forward): no memory.");
  partRanks(team, ranks);
  EXPECT_EQ(host_gpu::numCommunicators(), 0u);
}

/// The device of a rank hangs in a step, so that the others wait in a collective of NCCL, which has no limit by itself.
/// The rank is named by the process's last sentence, for its thread waits for the device.
TEST(GpuRanks, ARankWhoseDeviceHangsIsNamedAfterTheTimeLimit) {
  for (const int collectives : {1, 9}) {  // in the first run, and in a replayed one
    const Gpus gpus(3);
    host_gpu::hangInCollective(1, collectives);
    std::string sentence;
    RankWatch watch{.patience = Patience(Seconds(0.3)), .timeToEnd = Seconds(0.3)};
    watch.whenRankHangs = [&](const Error& error) {
      sentence = error.message;
      host_gpu::releaseHungDevices();  // a program ends here
    };
    const RankedRun run = runOnRanks(layers(DType::F32, 0, true), Gpus::open(3), {.numRuns = 8, .watch = watch});
    EXPECT_NE(sentence.find("a collective of NCCL did not end within 0.3 s: rank 1 of 3 did not reach"),
              std::string::npos)
        << sentence << "\n"
        << run.problem;
    EXPECT_TRUE(sentence.ends_with("Rank 1 had not ended 0.3 s later.")) << sentence;
    EXPECT_FALSE(run.problem.empty());
    EXPECT_EQ(host_gpu::numCommunicators(), 0u);
  }
}

/// Its thread hangs, while the other ranks have launched collectives with it.
TEST(GpuRanks, ARankWhoseThreadHangsIsNamedAfterTheTimeLimit) {
  const Gpus gpus(2);
  const auto backends = Gpus::open(2);
  std::promise<void> release;
  std::string sentence;
  RankTeam team(2, {.patience = Patience(Seconds(0.3)),
                    .whenRankHangs =
                        [&](const Error& error) {
                          sentence = error.message;
                          release.set_value();
                        },
                    .timeToEnd = Seconds(0.2)});
  std::vector<RankResources> ranks;
  for (const auto& backend : backends) ranks.push_back({backend, nullptr, {}});
  ASSERT_TRUE(joinRanks(team, ranks, SumOrder::Library));
  const Result<void> ran = team.run([&](int rank) -> Result<void> {
    if (rank == 0) return release.get_future().wait(), Result<void>();
    Backend& backend = *backends[static_cast<std::size_t>(rank)];
    const auto memory = backend.allocate(64);
    const CollectivePart part{DType::F32, 16, (*memory)->data(), (*memory)->data()};
    ranks[static_cast<std::size_t>(rank)].communicator->run(
        {.kind = CollectiveKind::AllReduce, .name = "sums", .parts = {&part, 1}});
    backend.synchronize();
    return {};
  });
  EXPECT_FALSE(ran);
  EXPECT_NE(sentence.find("rank 0 of 2 did not reach"), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with("Rank 0 had not ended 0.2 s later.")) << sentence;
  partRanks(team, ranks);
}

/// A prediction runs one rank, which waits for no other.
TEST(GpuRanks, ARankAloneNeedsNoLibrary) {
  const Gpus gpus(1);
  RankTeam team(makeLoneRank(4));
  std::vector<RankResources> ranks(4);
  ranks.front().backend = Gpus::open(1).front();
  ASSERT_TRUE(joinRanks(team, ranks, SumOrder::Library));
  EXPECT_EQ(ranks.front().communicator->size(), 4);
  EXPECT_EQ(host_gpu::numCommunicators(), 0u);
}

TEST(GpuRanks, NeedALibraryThatIsNewEnough) {
  const Gpus gpus(2);
  const auto problemWith = [](int version) {
    const int before = host_gpu::setNcclVersion(version);
    const RankedRun run = runOnRanks(layers(DType::F32, 1, true), Gpus::open(2));
    host_gpu::setNcclVersion(before);
    return run.problem;
  };
  EXPECT_NE(problemWith(0).find("libnccl.so.2 does not load"), std::string::npos) << problemWith(0);
  EXPECT_NE(problemWith(21803).find("is NCCL 2.18.3, expected 2.19.0 or newer."), std::string::npos)
      << problemWith(21803);
}

TEST(GpuRanks, TwoOnOneGpuAreRefusedWithTheLibrarysWords) {
  const Gpus gpus(1);
  const RankedRun run = runOnRanks(layers(DType::F32, 1, true), Gpus::open(2, 0));
  EXPECT_NE(run.problem.find("Duplicate GPU detected"), std::string::npos) << run.problem;
}

}  // namespace
}  // namespace fuseline::testing
