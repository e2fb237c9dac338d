// Files of shards: what ranks write is read as whole tensors, and files that do not fit together are refused.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/rank_files.h"

#include "core/tensor/random_tensor.h"
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

using Shards = std::map<std::string, Shard, std::less<>>;

const Shards kShards = {{"fc1.weight", {.kind = Shard::Kind::Slice, .axis = 0, .parts = 2}},
                        {"fc2.weight", {.kind = Shard::Kind::Slice, .axis = 1}},
                        {"fc2.bias", {.kind = Shard::Kind::Summand}},
                        {"norm.weight", {}}};

NamedTensors wholeTensors() {
  NamedTensors tensors;
  const auto add = [&](const char* name, DType dtype, Shape shape) {
    tensors.emplace_back(name, randomNormal({.dtype = dtype, .shape = std::move(shape)}, 7, name));
  };
  add("fc1.weight", DType::BF16, {24, 5});
  add("fc2.weight", DType::F32, {5, 12});
  add("fc2.bias", DType::F16, {5});
  add("norm.weight", DType::F32, {5});
  add("fc1.input.scale", DType::F32, {1});
  return tensors;
}

/// The parts of one rank.
void writeRank(const std::filesystem::path& folder, int rank, int ranks, const NamedTensors& whole) {
  NamedTensors parts;
  for (const auto& [name, tensor] : whole) {
    const auto shard = kShards.find(name);
    parts.emplace_back(name, shard == kShards.end() ? tensor : shardOf(tensor, shard->second, rank, ranks));
  }
  const Result<void> written = writeRankFile(folder, rank, ranks, parts, kShards);
  ASSERT_TRUE(written) << written.error().message;
}

/// After the folder's name.
std::string problemOf(const std::filesystem::path& folder) {
  const Result<NamedTensors> read = readRankFiles(folder);
  if (read) return "none";
  const std::string& message = read.error().message;
  return message.substr(std::min(message.size(), folder.string().size() + 1));
}

TEST(RankFiles, OfAnyNumberOfRanksAreReadAsWholeTensors) {
  const NamedTensors whole = wholeTensors();
  for (const int ranks : {1, 2, 3}) {
    const TemporaryFolder folder;
    for (int rank = 0; rank < ranks; ++rank) writeRank(folder / "state", rank, ranks, whole);
    EXPECT_TRUE(hasRankFiles(folder / "state"));
    const Result<NamedTensors> read = readRankFiles(folder / "state");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ((*read)[i].first, whole[i].first);
      EXPECT_EQ((*read)[i].second.spec, whole[i].second.spec) << whole[i].first;
      EXPECT_EQ((*read)[i].second.data, whole[i].second.data) << whole[i].first << " of " << ranks;
    }
  }
}

// A file can be read by any reader of safetensors; its metadata are texts.
TEST(RankFiles, SayInTheirMetadataWhichPartARankHas) {
  const TemporaryFolder folder;
  writeRank(folder / "state", 1, 2, wholeTensors());
  const auto file = folder / "state" / "rank-1-of-2.safetensors";
  const TensorFileMetadata expected = {{"fuseline.rank", "1"},
                                       {"fuseline.ranks", "2"},
                                       {"fuseline.shard:fc1.weight", "axis 0 parts 2"},
                                       {"fuseline.shard:fc2.weight", "axis 1"},
                                       {"fuseline.shard:fc2.bias", "summand"},
                                       {"fuseline.shard:norm.weight", "whole"},
                                       {"fuseline.shard:fc1.input.scale", "own"}};
  EXPECT_EQ(*safetensorsMetadata(file), expected);
  EXPECT_EQ(readSafetensors(file)->front().second.spec.shape, (Shape{12, 5}));
  EXPECT_NE(checkNoRankFile(file).error().message.find("shards of rank 1 of 2"), std::string::npos);
}

TEST(RankFiles, ThatDoNotFitTogetherAreRefused) {
  const TemporaryFolder folder;
  const auto state = folder / "state";
  const NamedTensors whole = wholeTensors();
  writeRank(state, 0, 2, whole);
  EXPECT_EQ(problemOf(state), " rank-1-of-2.safetensors is missing. Copy the files of all 2 ranks into the folder.");
  NamedTensors other = whole;
  other[3].second = randomNormal(other[3].second.spec, 8, "other");
  writeRank(state, 1, 2, other);
  EXPECT_NE(problemOf(state).find("norm.weight: it differs from rank 0"), std::string::npos) << problemOf(state);
  other = whole;
  other[4].second = randomNormal(other[4].second.spec, 8, "other");  // each rank's own: that of rank 0 is read
  writeRank(state, 1, 2, other);
  EXPECT_EQ(readRankFiles(state)->back().second.data, whole.back().second.data);
  other = whole;
  other.pop_back();
  writeRank(state, 1, 2, other);
  EXPECT_NE(problemOf(state).find("All files must come from the same run."), std::string::npos) << problemOf(state);
  EXPECT_NE(checkRankFolder(state, 4).error().message.find("belongs to a run of 2 ranks; expected 4"),
            std::string::npos);
  std::filesystem::copy_file(state / "rank-0-of-2.safetensors", state / "rank-1-of-2.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(problemOf(state).find("its metadata is not that of rank 1 of 2"), std::string::npos) << problemOf(state);
}

TEST(RankFiles, WithMetadataThatLiesAreRefused) {
  for (const std::string text : {"axis 2", "axis -1", "axis 0 parts 0", "axis 0 parts 5", "axis", "axes 0", ""}) {
    const TemporaryFolder folder;
    const NamedTensors tensors = {{"w", Tensor::zeros({DType::F32, {3, 4}})}};
    const Result<void> written =
        writeSafetensors(folder / "rank-0-of-1.safetensors", tensors,
                         {{"fuseline.rank", "0"}, {"fuseline.ranks", "1"}, {"fuseline.shard:w", text}});
    ASSERT_TRUE(written);
    EXPECT_NE(problemOf(folder.path()).find("expected whole, summand or an axis"), std::string::npos)
        << text << ": " << problemOf(folder.path());
  }
}

}  // namespace
}  // namespace fuseline::testing
