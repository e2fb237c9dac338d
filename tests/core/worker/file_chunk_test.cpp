// Files in parts: the way between a worker and a caller without a common disk.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/protocol.h"
#include "core/worker/server.h"
#include "tests/support/one_backend.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

std::string bytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(FileChunks, CarryAFileOfSeveralParts) {
  const testing::TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 2'500'000; ++i) bytes += static_cast<char>(i * 7);
  std::ofstream(folder / "from", std::ios::binary) << bytes;
  int numParts = 0;
  const Result<void> sent = sendInChunks((folder / "from").string(), "to", [&](const FileChunk& chunk) {
    ++numParts;
    const Result<WorkerEvent> event = decodeEvent(encode(WorkerEvent(chunk)));
    ASSERT_TRUE(event) << event.error().message;
    const Result<void> written = writeChunk(std::get<FileChunk>(*event), (folder / "to").string());
    EXPECT_TRUE(written) << written.error().message;
  });
  EXPECT_TRUE(sent);
  EXPECT_EQ(numParts, 3);
  EXPECT_TRUE(bytesOf(folder / "to") == bytes);
}

TEST(FileChunks, RefuseGapsAndOtherText) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "to").string();
  EXPECT_TRUE(writeChunk({"to", 0, "AAAA"}, path));
  EXPECT_FALSE(writeChunk({"to", 7, "AAAA"}, path));
  EXPECT_FALSE(writeChunk({"to", 3, "A*"}, path));
  EXPECT_EQ(bytesOf(path), std::string(3, '\0'));
}

TEST(FileChunks, AreRefusedWhereDisksAreShared) {
  std::istringstream input(encode(WorkerRequest(FileChunk{"x", 0, "AAAA"})) + "\n");
  std::ostringstream output;
  serveWorker(input, output, testing::OneBackend(makeReferenceBackend()));
  EXPECT_NE(output.str().find("only a worker on another machine accepts files"), std::string::npos) << output.str();
  EXPECT_FALSE(std::filesystem::exists("x"));
}

}  // namespace
}  // namespace fuseline
