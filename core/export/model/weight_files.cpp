// Finds tensors by name, through the index of a folder if it has one.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/weight_files.h"

#include "core/document/json_text.h"
#include "core/support/json.h"
#include "core/support/read_file.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kModelName = "model.safetensors";
constexpr const char* kExtension = ".safetensors";

/// The names that versions of transformers give a tensor: with the name of the model in front, without it, and inside a
/// model of several modalities.
std::vector<std::string> spellings(std::string_view name) {
  std::vector<std::string> names = {std::string(name)};
  const std::string rest(name.substr(std::min(name.size(), name.find('.') + 1)));
  if (!rest.starts_with("weight") && !rest.starts_with("bias")) names.push_back(rest);
  names.push_back(fmt::format("language_model.{}", name));
  names.push_back(fmt::format("model.language_model.{}", rest));
  const std::size_t end = names.size();
  for (std::size_t i = 0; i < end; ++i) {
    constexpr std::string_view kWeight = "LayerNorm.weight";
    constexpr std::string_view kBias = "LayerNorm.bias";
    const std::string& each = names[i];
    if (each.ends_with(kWeight))
      names.push_back(each.substr(0, each.size() - 6) + "gamma");
    else if (each.ends_with(kBias))
      names.push_back(each.substr(0, each.size() - 4) + "beta");
  }
  return names;
}

/// Files of an index are beside it.
bool isPlainName(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.filename() == path && name != "." && name != ".." && isUtf8(name);
}

/// The files of a folder without an index. Others may lie beside the one that transformers reads.
Result<std::vector<fs::path>> wholeFilesIn(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kModelName, ignored)) return std::vector{folder / kModelName};
  return safetensorsIn(folder);
}

using Shards = std::map<std::string, fs::path, std::less<>>;

Result<Shards> shardsOf(const fs::path& index) {
  const Result<std::string> text = readWholeFile(index, {.what = "index of weights", .maxMiB = 64});
  if (!text) return text.error();
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return Error{fmt::format("{}: expected a JSON object with weight_map, the file of each tensor.", index.string())};
  Shards shards;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() || !isPlainName(file.get<std::string>()))
      return Error{fmt::format("{}: the file of tensor '{}' is {}; expected the name of a file in the same folder.",
                               index.string(), shortened(visibleText(tensor)),
                               shortened(visibleText(file.dump(-1, ' ', false, Json::error_handler_t::replace))))};
    shards.emplace(tensor, index.parent_path() / file.get<std::string>());
  }
  if (shards.empty()) return Error{fmt::format("{}: its weight_map has no tensors.", index.string())};
  return shards;
}

/// Errors: one of them is missing.
Result<std::vector<fs::path>> filesOfIndex(const fs::path& index) {
  const Result<Shards> shards = shardsOf(index);
  if (!shards) return shards.error();
  std::set<fs::path> files;
  std::error_code ignored;
  for (const auto& [tensor, file] : *shards)
    if (files.insert(file).second && !fs::exists(file, ignored))
      return Error{fmt::format("{}: the file of tensor {}, {}, is missing.", index.string(),
                               shortened(visibleText(tensor)), shortened(visibleText(file.filename().string())))};
  return std::vector<fs::path>(files.begin(), files.end());
}

}  // namespace

Result<std::vector<fs::path>> safetensorsIn(const fs::path& folder) {
  std::error_code problem;
  if (fs::exists(folder / kIndexName, problem)) return filesOfIndex(folder / kIndexName);
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem))
    if (entry.path().extension() == kExtension) files.push_back(entry.path());
  if (problem) return Error{fmt::format("{}: the folder cannot be read: {}.", folder.string(), problem.message())};
  std::ranges::sort(files);
  if (files.empty())
    return Error{
        fmt::format("{}: the folder has no safetensors file; expected files *.safetensors, or {} with its files.",
                    folder.string(), kIndexName)};
  return files;
}

Result<WeightFiles> WeightFiles::open(const fs::path& path) {
  WeightFiles files;
  files.m_path = path;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const Result<void> added = path.filename() == kIndexName ? files.addIndex(path) : files.addFile(path);
    return added ? Result<WeightFiles>(std::move(files)) : added.error();
  }
  if (fs::exists(path / kIndexName, ignored)) {
    if (Result<void> added = files.addIndex(path / kIndexName); !added) return added.error();
    return files;
  }
  const Result<std::vector<fs::path>> inFolder = wholeFilesIn(path);
  if (!inFolder) return inFolder.error();
  for (const fs::path& file : *inFolder)
    if (Result<void> added = files.addFile(file); !added) return added.error();
  return files;
}

Result<void> WeightFiles::addFile(const fs::path& file) {
  if (!m_opened.insert(file).second) return {};
  const Result<std::vector<StoredTensor>> tensors = safetensorsIndex(file);
  if (!tensors) return tensors.error();
  for (const StoredTensor& tensor : *tensors) m_places.emplace(tensor.name, Place{file, tensor});
  return {};
}

Result<void> WeightFiles::addIndex(const fs::path& index) {
  Result<Shards> shards = shardsOf(index);
  if (!shards) return shards.error();
  m_shards = std::move(*shards);
  return {};
}

std::vector<fs::path> WeightFiles::files() const {
  std::set<fs::path> files = m_opened;
  for (const auto& [tensor, file] : m_shards) files.insert(file);
  return {files.begin(), files.end()};
}

Result<bool> WeightFiles::has(const std::string& name) {
  if (const auto shard = m_shards.find(name); shard != m_shards.end())
    if (Result<void> added = addFile(shard->second); !added) return added.error();
  return m_places.contains(name);
}

Result<std::string> WeightFiles::storedName(std::string_view name) {
  for (const std::string& spelling : spellings(name)) {
    const Result<bool> isThere = has(spelling);
    if (!isThere) return isThere.error();
    if (*isThere) return spelling;
  }
  return std::string();
}

Result<bool> WeightFiles::contains(std::string_view name) {
  const Result<std::string> stored = storedName(name);
  return stored ? Result<bool>(!stored->empty()) : stored.error();
}

Result<Tensor> WeightFiles::read(std::string_view name) {
  const Result<std::string> stored = storedName(name);
  if (!stored) return stored.error();
  if (stored->empty())
    return Error{
        fmt::format("{}: there is no tensor {}. Are these the weights of the config's model?", m_path.string(), name)};
  const Place& place = m_places.at(*stored);
  if (const std::string& dtype = place.tensor.foreignDtype; !dtype.empty())
    return Error{
        fmt::format("{}: tensor {} has the dtype {}; expected F32, F16 or BF16. Import a model that is not "
                    "quantized.",
                    place.file.string(), *stored, shortened(visibleText(dtype)))};
  Tensor tensor{.spec = place.tensor.spec, .data = std::vector<std::byte>(place.tensor.end - place.tensor.begin)};
  std::ifstream in(place.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(place.tensor.begin));
  in.read(reinterpret_cast<char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
  if (!in || static_cast<std::size_t>(in.gcount()) != tensor.data.size())
    return Error{fmt::format("{}: tensor {} cannot be read; the file changed, or the disk failed.", place.file.string(),
                             *stored)};
  return tensor;
}

}  // namespace fuseline
