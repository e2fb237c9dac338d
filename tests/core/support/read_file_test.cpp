// Sources that are no regular files: each ends with a sentence, and soon.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"
#include "tests/support/temporary_folder.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace fuseline::testing {
namespace {

std::string problemOf(const std::string& path, const std::string& what = "run file") {
  const Result<std::string> text = readWholeFile(path, {.what = what});
  return text ? "none" : text.error().message;
}

TEST(ReadFile, NamesWhatIsNoFile) {
  EXPECT_EQ(problemOf("/"), "Cannot read /: expected a run file, found a folder.");
  EXPECT_EQ(problemOf("/", "ONNX model"), "Cannot read /: expected an ONNX model, found a folder.");
  EXPECT_EQ(problemOf("/dev/zero"), "Cannot read /dev/zero: expected a run file, found a device.");
  EXPECT_EQ(problemOf("nowhere"), "Cannot read nowhere: No such file or directory.");
  EXPECT_EQ(*readWholeFile("/dev/null", {.what = "plan"}), "");
}

TEST(ReadFile, WaitsForTheWriterOfAPipe) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << std::string(3 << 20, 'x'); });
  EXPECT_EQ(readWholeFile(pipe, {.what = "plan"})->size(), std::size_t{3} << 20U);
  writer.join();
  EXPECT_EQ(problemOf(pipe), "Cannot read " + pipe + ": expected a run file, found a pipe to which no program writes.");
}

TEST(ReadFile, ChecksThatAFileHasASize) {
  EXPECT_TRUE(checkRegularFile("/proc/self/maps", "table"));
  EXPECT_EQ(checkRegularFile("/dev/zero", "safetensors file").error().message,
            "Cannot read /dev/zero: expected a safetensors file, found a device.");
  EXPECT_FALSE(checkRegularFile("nowhere", "table"));
}

}  // namespace
}  // namespace fuseline::testing
