// Writes and joins the files of ranks. Files are foreign input: their metadata is checked before it is used.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/rank_files.h"

#include "core/tensor/safetensors.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRankKey = "fuseline.rank";
constexpr std::string_view kRanksKey = "fuseline.ranks";
constexpr std::string_view kShardKey = "fuseline.shard:";
constexpr std::string_view kWhole = "whole";
constexpr std::string_view kSummand = "summand";
constexpr std::string_view kOwn = "own";  // of each rank, like the state of a quantizer
constexpr std::string_view kAxis = "axis ";
constexpr std::string_view kParts = " parts ";
constexpr int kMostRanks = 4096;

std::optional<std::int64_t> numberIn(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// "whole", "summand", "axis 0", "axis 0 parts 2"; as kOwn in metadata.
std::string textOf(const Shard& shard) {
  switch (shard.kind) {
    case Shard::Kind::Whole: return std::string(kWhole);
    case Shard::Kind::Summand: return std::string(kSummand);
    case Shard::Kind::Slice: break;
  }
  const std::string axis = fmt::format("{}{}", kAxis, shard.axis);
  return shard.parts == 1 ? axis : fmt::format("{}{}{}", axis, kParts, shard.parts);
}

/// shape: of the part. Nothing: no shard of a tensor of this shape.
std::optional<Shard> shardIn(std::string_view text, const Shape& shape) {
  if (text == kWhole || text == kOwn) return Shard();
  if (text == kSummand) return Shard{.kind = Shard::Kind::Summand};
  if (!text.starts_with(kAxis)) return std::nullopt;
  text.remove_prefix(kAxis.size());
  const std::size_t end = text.find(kParts);
  const std::optional<std::int64_t> axis = numberIn(text.substr(0, end));
  const std::optional<std::int64_t> parts =
      end == std::string_view::npos ? 1 : numberIn(text.substr(end + kParts.size()));
  if (!axis || !parts || *axis >= std::ssize(shape) || *parts < 1) return std::nullopt;
  if (shape[static_cast<std::size_t>(*axis)] % *parts != 0) return std::nullopt;
  return Shard{.kind = Shard::Kind::Slice, .axis = static_cast<int>(*axis), .parts = *parts};
}

struct FilePlace {
  int rank = 0;
  int ranks = 1;
  bool operator==(const FilePlace&) const = default;
};

std::optional<FilePlace> placeOf(const std::optional<std::int64_t>& rank, const std::optional<std::int64_t>& ranks) {
  if (!rank || !ranks || *ranks > kMostRanks || *rank >= *ranks) return std::nullopt;
  return FilePlace{static_cast<int>(*rank), static_cast<int>(*ranks)};
}

/// The place in a name that rankFileName() gives.
std::optional<FilePlace> placeIn(const std::string& name) {
  constexpr std::string_view kBegin = "rank-";
  constexpr std::string_view kBetween = "-of-";
  constexpr std::string_view kEnd = ".safetensors";
  const std::size_t between = name.find(kBetween);
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || between == std::string::npos) return std::nullopt;
  const std::string_view text(name);
  const std::string_view rank = text.substr(kBegin.size(), between - kBegin.size());
  const std::string_view rest = text.substr(between + kBetween.size());
  if (rest.size() < kEnd.size()) return std::nullopt;
  return placeOf(numberIn(rank), numberIn(rest.substr(0, rest.size() - kEnd.size())));
}

std::vector<FilePlace> placesIn(const fs::path& folder) {
  std::vector<FilePlace> places;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
    if (const std::optional<FilePlace> place = placeIn(entry.path().filename().string())) places.push_back(*place);
  return places;
}

std::optional<FilePlace> placeIn(const TensorFileMetadata& metadata) {
  const auto number = [&](std::string_view key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::nullopt : numberIn(found->second);
  };
  return placeOf(number(kRankKey), number(kRanksKey));
}

/// The file of one rank.
struct RankFile {
  fs::path path;
  NamedTensors tensors;
  std::vector<Shard> shards;  // by tensor
  std::vector<bool> isOwn;    // by tensor
};

Error shardError(const RankFile& file, std::string_view name, std::string_view sentence) {
  return {fmt::format("{}: {}: {}", file.path.string(), name, sentence)};
}

Result<void> addShards(const TensorFileMetadata& metadata, RankFile& file) {
  for (const auto& [name, tensor] : file.tensors) {
    const auto text = metadata.find(std::string(kShardKey) + name);
    const std::string found = text == metadata.end() ? "nothing" : text->second;
    const std::optional<Shard> shard = shardIn(found, tensor.spec.shape);
    if (!shard)
      return shardError(file, name,
                        fmt::format("its metadata has {:.40} as the part of {} that the rank holds; expected whole, "
                                    "summand or an axis. Save the run again.",
                                    found, toString(tensor.spec)));
    file.shards.push_back(*shard);
    file.isOwn.push_back(found == kOwn);
  }
  return {};
}

Result<RankFile> readRankFile(const fs::path& folder, const FilePlace& place) {
  RankFile file{.path = folder / rankFileName(place.rank, place.ranks), .tensors = {}, .shards = {}, .isOwn = {}};
  const Result<TensorFileMetadata> metadata = safetensorsMetadata(file.path);
  if (!metadata) return metadata.error();
  if (placeIn(*metadata) != place)
    return Error{fmt::format("{}: its metadata is not that of rank {} of {}. Save the run again.", file.path.string(),
                             place.rank, place.ranks)};
  Result<NamedTensors> tensors = readSafetensors(file.path);
  if (!tensors) return tensors.error();
  file.tensors = std::move(*tensors);
  if (Result<void> added = addShards(*metadata, file); !added) return added.error();
  return file;
}

/// Do the parts of all ranks make one tensor?
Result<void> checkParts(const std::vector<RankFile>& files, std::size_t index) {
  const auto& [name, first] = files.front().tensors[index];
  for (const RankFile& file : files) {
    if (file.tensors.size() != files.front().tensors.size() || file.tensors[index].first != name)
      return shardError(file, name,
                        fmt::format("its position differs from that in {}. All files must come from the same run.",
                                    files.front().path.filename().string()));
    const Tensor& part = file.tensors[index].second;
    if (part.spec != first.spec || file.shards[index] != files.front().shards[index])
      return shardError(
          file, name,
          fmt::format("it is {} ({}), but {} ({}) on rank 0. All files must come from one run.", toString(part.spec),
                      textOf(file.shards[index]), toString(first.spec), textOf(files.front().shards[index])));
  }
  return {};
}

Result<Tensor> joined(std::vector<RankFile>& files, std::size_t index) {
  if (Result<void> fit = checkParts(files, index); !fit) return fit.error();
  const std::string& name = files.front().tensors[index].first;
  std::vector<Tensor> parts;
  for (RankFile& file : files) parts.push_back(std::move(file.tensors[index].second));
  const Shard& shard = files.front().shards[index];
  if (shard.kind == Shard::Kind::Whole && !files.front().isOwn[index])
    for (std::size_t rank = 1; rank < parts.size(); ++rank)
      if (parts[rank].data != parts.front().data)
        return shardError(files[rank], name,
                          "it differs from rank 0, but all ranks hold this tensor. Save the run again.");
  return wholeOf(parts, shard);
}

}  // namespace

std::string rankFileName(int rank, int ranks) { return fmt::format("rank-{}-of-{}.safetensors", rank, ranks); }

bool hasRankFiles(const fs::path& folder) { return !placesIn(folder).empty(); }

Result<void> checkRankFolder(const fs::path& folder, int ranks) {
  for (const FilePlace& place : placesIn(folder))
    if (place.ranks != ranks)
      return Error{
          fmt::format("{}: {} belongs to a run of {} ranks; expected {}. Choose another folder, or remove these files.",
                      folder.string(), rankFileName(place.rank, place.ranks), place.ranks, ranks)};
  return {};
}

Result<void> writeRankFile(const fs::path& folder, int rank, int ranks, const NamedTensors& tensors,
                           const std::map<std::string, Shard, std::less<>>& shards) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return Error{fmt::format("{}: cannot be created: {}.", folder.string(), failure.message())};
  if (Result<void> fits = checkRankFolder(folder, ranks); !fits) return fits;
  TensorFileMetadata metadata = {{std::string(kRankKey), std::to_string(rank)},
                                 {std::string(kRanksKey), std::to_string(ranks)}};
  for (const auto& [name, tensor] : tensors) {
    const auto shard = shards.find(name);
    metadata[std::string(kShardKey) + name] = shard == shards.end() ? std::string(kOwn) : textOf(shard->second);
  }
  return writeSafetensors(folder / rankFileName(rank, ranks), tensors, metadata);
}

Result<NamedTensors> readRankFiles(const fs::path& folder) {
  const std::vector<FilePlace> places = placesIn(folder);
  if (places.empty()) return Error{fmt::format("{}: expected files such as rank-0-of-2.safetensors.", folder.string())};
  const int ranks = places.front().ranks;
  if (Result<void> fits = checkRankFolder(folder, ranks); !fits) return fits.error();
  std::vector<RankFile> files;
  for (int rank = 0; rank < ranks; ++rank) {
    if (std::ranges::find(places, FilePlace{rank, ranks}) == places.end())
      return Error{fmt::format("{}: {} is missing. Copy the files of all {} ranks into the folder.", folder.string(),
                               rankFileName(rank, ranks), ranks)};
    Result<RankFile> file = readRankFile(folder, {rank, ranks});
    if (!file) return file.error();
    files.push_back(std::move(*file));
  }
  NamedTensors whole;
  for (std::size_t index = 0; index < files.front().tensors.size(); ++index) {
    Result<Tensor> tensor = joined(files, index);
    if (!tensor) return tensor.error();
    whole.emplace_back(files.front().tensors[index].first, std::move(*tensor));
  }
  return whole;
}

Result<void> checkNoRankFile(const fs::path& file) {
  const Result<TensorFileMetadata> metadata = safetensorsMetadata(file);
  if (!metadata) return metadata.error();
  const std::optional<FilePlace> place = placeIn(*metadata);
  if (!place || place->ranks == 1) return {};
  return Error{fmt::format("{}: it has the shards of rank {} of {}. Name the folder with the files of all ranks.",
                           file.string(), place->rank, place->ranks)};
}

}  // namespace fuseline
