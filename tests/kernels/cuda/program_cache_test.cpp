// Kept programs: the entries read from a file, and from one that is damaged, foreign or one too many.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/program_cache.h"

#include "tests/support/temporary_folder.h"

#include <chrono>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;

const std::string kProgramOrigin = "sm_90a, NVRTC 13.1, headers 0123456789abcdef";
const std::string kSource = "extern \"C\" __global__ void f() {\n}\n";
const std::vector<char> kBinary = {'\x7f', 'E', 'L', 'F', '\0', '\n', '\xff'};

std::size_t numFiles(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ProgramFile, GivesBackWhatWasWritten) {
  EXPECT_EQ(parseProgram(kProgramOrigin, kSource, formatProgram(kProgramOrigin, kSource, kBinary)), kBinary);
}

TEST(ProgramFile, IsOfOneSourceAndOneOrigin) {
  const std::string text = formatProgram(kProgramOrigin, kSource, kBinary);
  EXPECT_EQ(parseProgram("sm_100a" + kProgramOrigin.substr(6), kSource, text), std::nullopt);
  EXPECT_EQ(parseProgram(kProgramOrigin, kSource + " ", text), std::nullopt);
  EXPECT_EQ(parseProgram(kProgramOrigin, kSource.substr(1), text), std::nullopt);
  EXPECT_EQ(parseProgram(kProgramOrigin, kSource, ""), std::nullopt);
}

TEST(ProgramFile, ThatIsDamagedHoldsNothing) {
  EXPECT_TRUE(rc::check("one byte that differs", [] {
    std::string text = formatProgram(kProgramOrigin, kSource, kBinary);
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = static_cast<char>(text[at] ^ *rc::gen::inRange(1, 256));
    RC_ASSERT(parseProgram(kProgramOrigin, kSource, text) == std::nullopt);
  }));
  EXPECT_TRUE(rc::check("a beginning", [] {
    const std::string text = formatProgram(kProgramOrigin, kSource, kBinary);
    RC_ASSERT(parseProgram(kProgramOrigin, kSource, text.substr(0, *rc::gen::inRange<std::size_t>(0, text.size()))) ==
              std::nullopt);
  }));
}

TEST(ProgramCache, KeepsProgramsForTheNextRun) {
  const testing::TemporaryFolder folder;
  const fs::path programs = folder.path() / "fuseline" / "programs";
  ProgramCache(programs, kProgramOrigin).keep(kSource, kBinary);
  EXPECT_EQ(ProgramCache(programs, kProgramOrigin).find(kSource), kBinary);
  EXPECT_EQ(ProgramCache(programs, kProgramOrigin).find("another"), std::nullopt);
  EXPECT_EQ(ProgramCache(programs, "another").find(kSource), std::nullopt);
  EXPECT_TRUE(ProgramCache(programs, kProgramOrigin).hasAny());
  EXPECT_FALSE(ProgramCache(programs, "another").hasAny());
}

TEST(ProgramCache, HasNoneWhereAllFilesAreDamaged) {
  const testing::TemporaryFolder folder;
  const ProgramCache cache(folder.path(), kProgramOrigin);
  cache.keep(kSource, kBinary);
  const fs::path file = fs::directory_iterator(folder.path())->path();
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_FALSE(cache.hasAny());
  fs::resize_file(file, 0);
  EXPECT_FALSE(cache.hasAny());
}

TEST(ProgramCache, WithoutAFolderKeepsNothing) {
  const ProgramCache cache({}, kProgramOrigin);
  cache.keep(kSource, kBinary);
  EXPECT_EQ(cache.find(kSource), std::nullopt);
}

TEST(ProgramCache, WhoseFolderIsAFileKeepsNothing) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "content";
  const ProgramCache cache(folder.path() / "file", kProgramOrigin);
  cache.keep(kSource, kBinary);
  EXPECT_EQ(cache.find(kSource), std::nullopt);
}

TEST(ProgramCache, DropsWhatWasNotUsedForTheLongestTime) {
  const testing::TemporaryFolder folder;
  constexpr std::size_t kMostFiles = 20;
  const ProgramCache cache(folder.path(), kProgramOrigin, kMostFiles);
  for (std::size_t i = 0; i < kMostFiles; ++i) cache.keep(fmt::format("source {}", i), kBinary);
  const fs::file_time_type longAgo = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) fs::last_write_time(file, longAgo);
  EXPECT_EQ(cache.find("source 7"), kBinary);
  cache.keep(kSource, kBinary);
  EXPECT_EQ(numFiles(folder.path()), kMostFiles);
  EXPECT_EQ(cache.find(kSource), kBinary);
  EXPECT_EQ(cache.find("source 7"), kBinary);
}

}  // namespace
}  // namespace fuseline::cuda
