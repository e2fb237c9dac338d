// Kept algorithms: the entries read from a file, and from one that is damaged, foreign or shared.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_cache.h"

#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;

const AlgorithmOrigin kOrigin{.device = "NVIDIA H200", .driver = "580.65.06", .library = "130100"};

KeptAlgorithm sample(unsigned seed) {
  KeptAlgorithm kept{
      .candidate = 3, .workspaceBytes = 1024 * seed, .medianNs = 0.1 * seed, .firstMedianNs = 7, .numCandidates = 16};
  for (std::size_t i = 0; i < kept.algorithm.size(); ++i)
    kept.algorithm[i] = static_cast<std::byte>(seed * 37 + i * 11);
  return kept;
}

const KeptAlgorithms kTwo = {{"8 x 8 x 8, bf16 by bf16 to bf16", sample(1)}, {"a \"name\" \\ of any kind", sample(2)}};

bool isPartOf(const KeptAlgorithms& whole, const KeptAlgorithms& part) {
  return std::ranges::all_of(part, [&](const auto& entry) {
    const auto found = whole.find(entry.first);
    return found != whole.end() && found->second == entry.second;
  });
}

std::string contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

rc::Gen<KeptAlgorithm> anyKept() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::container<std::vector<std::uint8_t>>(64, rc::gen::arbitrary<std::uint8_t>()),
                     rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange<std::int64_t>(1, 1 << 30),
                     rc::gen::inRange<std::int64_t>(1, 33)),
      [](const auto& values) {
        const auto& [bytes, workspace, time, count] = values;
        KeptAlgorithm kept{.workspaceBytes = workspace,
                           .medianNs = static_cast<double>(time) / 7.0,
                           .firstMedianNs = static_cast<double>(time) / 3.0,
                           .numCandidates = count};
        std::ranges::transform(bytes, kept.algorithm.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
        return kept;
      });
}

TEST(AlgorithmFile, GivesBackWhatWasWritten) {
  EXPECT_TRUE(rc::check([] {
    const auto keys = *rc::gen::container<std::vector<int>>(rc::gen::arbitrary<int>());
    KeptAlgorithms algorithms;
    for (const int key : keys) algorithms.emplace("problem " + std::to_string(key), *anyKept());
    RC_ASSERT(parseAlgorithms(kOrigin, formatAlgorithms(kOrigin, algorithms)) == algorithms);
  }));
}

TEST(AlgorithmFile, IsReadableHexadecimal) {
  const std::string text = formatAlgorithms(kOrigin, {{"p", sample(0)}});
  EXPECT_NE(text.find("\"algorithm\": \"000b16212c"), std::string::npos) << text;
}

TEST(AlgorithmFile, CutShortHoldsNothing) {
  const std::string text = formatAlgorithms(kOrigin, kTwo);
  ASSERT_EQ(text.back(), '\n');
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_TRUE(parseAlgorithms(kOrigin, std::string_view(text).substr(0, size)).empty()) << size;
}

TEST(AlgorithmFile, WithAFlippedBitHoldsIntactEntriesOnly) {
  const std::string text = formatAlgorithms(kOrigin, kTwo);
  for (std::size_t i = 0; i < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_TRUE(isPartOf(kTwo, parseAlgorithms(kOrigin, damaged))) << "byte " << i << ", bit " << bit;
    }
}

TEST(AlgorithmFile, WithAnyDamageHoldsIntactEntriesOnly) {
  const std::string text = formatAlgorithms(kOrigin, kTwo);
  EXPECT_TRUE(rc::check([&] {
    std::string damaged = text;
    const auto begin = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto count = *rc::gen::inRange<std::size_t>(0, text.size() - begin);
    damaged.replace(begin, count, *rc::gen::arbitrary<std::string>());
    RC_ASSERT(isPartOf(kTwo, parseAlgorithms(kOrigin, damaged)));
  }));
}

TEST(AlgorithmFile, KeepsTheOtherEntriesWhereOneIsDamaged) {
  std::string text = formatAlgorithms(kOrigin, kTwo);
  const std::size_t median = text.find("\"medianNs\": 0.1");
  ASSERT_NE(median, std::string::npos);
  text[median + 14] = '9';
  EXPECT_EQ(parseAlgorithms(kOrigin, text), (KeptAlgorithms{*kTwo.rbegin()}));
}

TEST(AlgorithmFile, OfAnotherKindOrOriginHoldsNothing) {
  for (const char* const text : {"", "null", "[]", "{}", "7", "{\"problems\": 7}", "not json", "\xff\xfe"})
    EXPECT_TRUE(parseAlgorithms(kOrigin, text).empty()) << text;
  const std::string text = formatAlgorithms(kOrigin, kTwo);
  for (const AlgorithmOrigin& other :
       {AlgorithmOrigin{"NVIDIA H100", "580.65.06", "130100"}, AlgorithmOrigin{"NVIDIA H200", "580.82.07", "130100"},
        AlgorithmOrigin{"NVIDIA H200", "580.65.06", "130101"}})
    EXPECT_TRUE(parseAlgorithms(other, text).empty());
  std::string newer = text;
  newer.replace(newer.find("\"version\": 2"), 12, "\"version\": 3");
  EXPECT_TRUE(parseAlgorithms(kOrigin, newer).empty());
}

TEST(AlgorithmFile, WithEntriesOfTheWrongShapeHoldsNothing) {
  for (const char* const problems :
       {"7", "null", "\"x\"", "{}", "{\"a\": 1}", "[1, null, [], {}]", "[{\"problem\": \"p\"}]"}) {
    std::string text = formatAlgorithms(kOrigin, {});
    const std::size_t empty = text.find("[]");
    ASSERT_NE(empty, std::string::npos);
    EXPECT_TRUE(parseAlgorithms(kOrigin, text.replace(empty, 2, problems)).empty()) << problems;
  }
}

TEST(AlgorithmFile, HasANameThatStaysInItsFolder) {
  const fs::path file =
      algorithmFile("/cache", {"../../NVIDIA H200\n/x" + std::string(500, 'a'), "580.65.06", "130100"});
  EXPECT_EQ(file.parent_path(), "/cache");
  EXPECT_LT(file.filename().string().size(), 255u);
  EXPECT_EQ(algorithmFile("/cache", kOrigin), "/cache/NVIDIA_H200_driver_580.65.06_cublaslt_130100.json");
}

TEST(AlgorithmCache, KeepsForTheNextProcess) {
  const testing::TemporaryFolder folder;
  AlgorithmCache(folder / "new/folders", kOrigin).keep("p", sample(3));
  const AlgorithmCache next(folder / "new/folders", kOrigin);
  EXPECT_EQ(next.find("p"), sample(3));
  EXPECT_EQ(next.find("q"), std::nullopt);
  EXPECT_EQ(AlgorithmCache(folder / "new/folders", {"NVIDIA H100", "580.65.06", "130100"}).find("p"), std::nullopt);
}

TEST(AlgorithmCache, AddsToWhatOthersHaveWritten) {
  const testing::TemporaryFolder folder;
  AlgorithmCache one(folder.path(), kOrigin);
  AlgorithmCache other(folder.path(), kOrigin);
  one.keep("p", sample(1));
  one.keep("both", sample(1));
  other.keep("q", sample(2));
  one.save();
  other.keep("both", sample(2));
  other.save();
  const AlgorithmCache next(folder.path(), kOrigin);
  EXPECT_EQ(next.find("p"), sample(1));
  EXPECT_EQ(next.find("q"), sample(2));
  EXPECT_EQ(next.find("both"), sample(2)) << "the last one counts";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1) << "no temporary file";
}

TEST(AlgorithmCache, ReplacesADamagedFile) {
  const testing::TemporaryFolder folder;
  const fs::path file = algorithmFile(folder.path(), kOrigin);
  std::ofstream(file) << "{\"format\": ";
  AlgorithmCache cache(folder.path(), kOrigin);
  EXPECT_EQ(cache.find("p"), std::nullopt);
  cache.keep("p", sample(1));
  cache.save();
  EXPECT_EQ(parseAlgorithms(kOrigin, contentOf(file)), (KeptAlgorithms{{"p", sample(1)}}));
}

TEST(AlgorithmCache, ForgetsWhatIsDroppedUntilItIsKeptAgain) {
  const testing::TemporaryFolder folder;
  AlgorithmCache cache(folder.path(), kOrigin);
  cache.keep("p", sample(1));
  cache.drop("p");
  EXPECT_EQ(cache.find("p"), std::nullopt);
  cache.keep("p", sample(2));
  cache.save();
  EXPECT_EQ(AlgorithmCache(folder.path(), kOrigin).find("p"), sample(2));
}

TEST(AlgorithmCache, WorksInMemoryWhereItCannotWrite) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "file") << "no folder";
  fs::create_directories(algorithmFile(folder / "taken", kOrigin));
  for (const fs::path& unusable : {fs::path(), folder / "file", folder / "file/below", folder / "taken"}) {
    AlgorithmCache cache(unusable, kOrigin);
    cache.keep("p", sample(1));
    cache.save();
    EXPECT_EQ(cache.find("p"), sample(1)) << unusable;
    EXPECT_EQ(AlgorithmCache(unusable, kOrigin).find("p"), std::nullopt) << unusable;
  }
}

constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{32} << 20;

TEST(ProblemKey, IsAText) {
  EXPECT_EQ(problemKey({.m = 16,
                        .n = 32,
                        .k = 64,
                        .b = Storage2d::Transposed,
                        .factorType = DType::BF16,
                        .cType = DType::BF16,
                        .alpha = 2.0F,
                        .hasBias = true,
                        .hasAddend = true},
                       kWorkspaceBytes),
            "16 x 32 x 64, bf16 by bf16 transposed to bf16, scaled, bias, addend, workspace of 33554432");
  EXPECT_EQ(problemKey({.m = 16,
                        .n = 32,
                        .k = 64,
                        .aCodes = FactorCodes{},
                        .bCodes = FactorCodes{ElementFormat::E5M2, Scaling::Block1x128},
                        .isFastAccumulated = true,
                        .cType = DType::F32},
                       kWorkspaceBytes),
            "16 x 32 x 64, e4m3 per_tensor by e5m2 block_1x128 to f32, fast accumulation, workspace of 33554432");
}

TEST(ProblemKey, TellsProblemsApart) {
  const FactorCodes e5m2{ElementFormat::E5M2, Scaling::PerTensor};
  const FactorCodes blocks{ElementFormat::E4M3, Scaling::Block1x128};
  std::vector<GemmProblem> problems(31, {.m = 2, .n = 3, .k = 4, .aCodes = FactorCodes{}, .bCodes = FactorCodes{}});
  problems[1].m = 5;
  problems[2].n = 5;
  problems[3].k = 5;
  problems[4].a = Storage2d::Transposed;
  problems[5].b = Storage2d::Transposed;
  problems[6].aCodes = e5m2;
  problems[7].bCodes = e5m2;
  problems[8].aCodes = blocks;
  problems[9].bCodes = blocks;
  problems[10].isFastAccumulated = true;
  problems[11].cType = DType::F16;
  problems[12].alpha = 0.5F;
  problems[13].hasBias = true;
  problems[14].hasAddend = true;
  problems[15].aCodes = problems[15].bCodes = std::nullopt;
  problems[16].isTf32 = true;
  problems[17].alignmentBytes = 2;
  problems[18].biasGradType = DType::F32;
  problems[19].biasGradType = DType::BF16;
  problems[20].activation = problems[21].activation = GemmActivation::Gelu;
  problems[21].hasPreActivation = true;
  problems[22].activation = GemmActivation::Relu;
  problems[23].hasGeluGrad = true;
  problems[24].batch.count = 5;
  problems[25].batch.aStride = 5;
  problems[26].batch.bStride = 5;
  problems[27].batch.cStride = 5;
  problems[28].batch.aRow = 5;
  problems[29].batch.bRow = 5;
  problems[30].batch.cRow = 5;
  std::set<std::string> keys = {problemKey(problems[0], 0)};
  for (const GemmProblem& problem : problems) keys.insert(problemKey(problem, kWorkspaceBytes));
  EXPECT_EQ(keys.size(), problems.size() + 1);
}

}  // namespace
}  // namespace fuseline::cuda
