// Files are replaced as a whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/atomic_file.h"

#include "tests/support/temporary_folder.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

std::string contentOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

auto text(std::string content) {
  return [content = std::move(content)](std::ostream& out) { out << content; };
}

std::ptrdiff_t numFiles(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(AtomicFile, ReplacesTheContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("a long first version")));
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("second")));
  EXPECT_EQ(contentOf(folder / "a"), "second");
  EXPECT_EQ(numFiles(folder), 1);
}

TEST(AtomicFile, KeepsTheOldContentWhenWritingFails) {
  const TemporaryFolder folder;
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("old")));
  EXPECT_FALSE(writeFileAtomically(folder / "a", [](std::ostream& out) {
    out << "half of the ne";
    out.setstate(std::ios::failbit);
  }));
  EXPECT_EQ(contentOf(folder / "a"), "old");
  EXPECT_EQ(numFiles(folder), 1);
}

TEST(AtomicFile, FollowsALinkAndLeavesItOne) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  ASSERT_TRUE(writeFileAtomically(folder / "elsewhere" / "a", text("old")));
  std::filesystem::create_symlink("elsewhere/a", folder / "link");
  ASSERT_TRUE(writeFileAtomically(folder / "link", text("new")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(contentOf(folder / "elsewhere" / "a"), "new");
  std::filesystem::create_symlink("elsewhere/b", folder / "dangling");
  ASSERT_TRUE(writeFileAtomically(folder / "dangling", text("made")));
  EXPECT_EQ(contentOf(folder / "elsewhere" / "b"), "made");
}

TEST(AtomicFile, ReplacesAFileThatCanOnlyBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file.";
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "old";
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_write);
  ASSERT_TRUE(writeFileAtomically(folder / "a", [](std::ostream& out) { out << "new"; }));
  EXPECT_EQ(std::filesystem::status(folder / "a").permissions(), std::filesystem::perms::owner_write);
}

TEST(AtomicFile, KeepsThePermissionsOfTheFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("old")));
  constexpr auto kOwnerOnly = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(folder / "a", kOwnerOnly);
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("new")));
  EXPECT_EQ(std::filesystem::status(folder / "a").permissions(), kOwnerOnly);
}

TEST(AtomicFile, NamesThePathOfAFolderThatDoesNotExist) {
  const TemporaryFolder folder;
  const auto path = folder / "missing" / "a";
  const Result<void> written = writeFileAtomically(path, text("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, path.string() +
                                         ": cannot be written: No such file or directory. Create the folder " +
                                         path.parent_path().string() + " first.");
}

TEST(AtomicFile, WritesToADeviceDirectly) { EXPECT_TRUE(writeFileAtomically("/dev/null", text("x"))); }

TEST(CheckWritable, LeavesTheFileAsItIs) {
  const TemporaryFolder folder;
  EXPECT_TRUE(checkWritable(folder / "a"));
  EXPECT_EQ(numFiles(folder), 0);
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("old")));
  EXPECT_TRUE(checkWritable(folder / "a"));
  EXPECT_EQ(contentOf(folder / "a"), "old");
  EXPECT_TRUE(checkWritable("/dev/null"));
}

TEST(CheckWritable, RefusesWhatWritingWouldRefuse) {
  const TemporaryFolder folder;
  for (const std::filesystem::path& path : {folder / "missing" / "a", folder.path()}) {
    const Result<void> writable = checkWritable(path);
    const Result<void> written = writeFileAtomically(path, text("x"));
    ASSERT_FALSE(writable);
    ASSERT_FALSE(written);
    EXPECT_EQ(writable.error().message, written.error().message);
  }
}

/// As kill -9 leaves it.
TEST(AtomicFile, RemovesWhatAKilledProgramLeft) {
  const TemporaryFolder folder;
  const auto minuteAgo = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1);
  for (const char* name : {"a.0123abcd.tmp", "a.notours.tmp", "b.0123abcd.tmp", "a.89abcdef.tmp"}) {
    std::ofstream(folder / name) << "half";
    std::filesystem::last_write_time(folder / name, minuteAgo);
  }
  const int other = open((folder / "a.89abcdef.tmp").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0) << "another program is writing";
  ASSERT_TRUE(writeFileAtomically(folder / "a", text("new")));
  close(other);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.0123abcd.tmp"));
  EXPECT_EQ(numFiles(folder), 4) << "a, and what is not its own or still being written";
}

}  // namespace
}  // namespace fuseline
