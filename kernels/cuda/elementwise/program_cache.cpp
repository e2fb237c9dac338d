// A file is one line of JSON, then the source, then the binary.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/program_cache.h"

#include "core/support/hash.h"
#include "core/support/json.h"
#include "kernels/cuda/support/kept_file.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "fuseline program";
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kEnding = ".program";

std::string headOf(std::string_view origin, std::string_view source, std::string_view binary) {
  const Json head = {{"format", kFormat},
                     {"version", kVersion},
                     {"origin", origin},
                     {"sourceBytes", source.size()},
                     {"binaryBytes", binary.size()},
                     {"checksum", fmt::format("{:016x}", fnv1a64(binary))}};
  return head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<fs::path> filesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure); !failure && at != fs::directory_iterator(); at.increment(failure))
    if (at->path().extension() == kEnding) files.push_back(at->path());
  return files;
}

fs::file_time_type lastUse(const fs::path& file) {
  std::error_code failure;
  const fs::file_time_type time = fs::last_write_time(file, failure);
  return failure ? fs::file_time_type::max() : time;
}

/// Is it an intact program, whatever its source?
bool isProgramOf(std::string_view origin, std::string_view text) {
  const std::size_t begin = std::min(text.find('\n'), text.size());
  const Json head = Json::parse(text.substr(0, begin), nullptr, false);
  if (!head.is_object() || !head.contains("sourceBytes") || !head["sourceBytes"].is_number_unsigned()) return false;
  const std::string_view content = text.substr(std::min(begin + 1, text.size()));
  return parseProgram(origin, content.substr(0, head["sourceBytes"].get<std::size_t>()), text).has_value();
}

}  // namespace

std::string formatProgram(std::string_view origin, std::string_view source, const std::vector<char>& binary) {
  const std::string_view bytes(binary.data(), binary.size());
  return fmt::format("{}{}{}", headOf(origin, source, bytes), source, bytes);
}

/// A file is intact if writing its content again gives the same text.
std::optional<std::vector<char>> parseProgram(std::string_view origin, std::string_view source, std::string_view text) {
  const std::size_t begin = text.find('\n');
  if (begin == std::string_view::npos || text.size() - begin - 1 < source.size()) return std::nullopt;
  const std::string_view bytes = text.substr(begin + 1 + source.size());
  std::vector<char> binary(bytes.begin(), bytes.end());
  if (binary.empty() || formatProgram(origin, source, binary) != text) return std::nullopt;
  return binary;
}

ProgramCache::ProgramCache(fs::path folder, std::string origin, std::size_t mostFiles)
    : m_folder(std::move(folder)), m_origin(std::move(origin)), m_mostFiles(mostFiles) {}

std::optional<std::vector<char>> ProgramCache::find(std::string_view source) const {
  if (m_folder.empty()) return std::nullopt;
  const fs::path file = fileOf(source);
  std::optional<std::vector<char>> binary = parseProgram(m_origin, source, readKept(file));
  std::error_code ignored;
  if (binary) fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  return binary;
}

bool ProgramCache::hasAny() const {
  if (m_folder.empty()) return false;
  return std::ranges::any_of(filesOf(m_folder), [&](const fs::path& file) {
    return file.filename().string().starts_with(prefix()) && isProgramOf(m_origin, readKept(file));
  });
}

void ProgramCache::keep(std::string_view source, const std::vector<char>& binary) const {
  if (m_folder.empty()) return;
  writeKept(fileOf(source), formatProgram(m_origin, source, binary));
  dropOldest();
}

std::string ProgramCache::prefix() const { return fmt::format("{:016x}-", fnv1a64(m_origin)); }

fs::path ProgramCache::fileOf(std::string_view source) const {
  return m_folder / fmt::format("{}{:016x}{}", prefix(), fnv1a64(source), kEnding);
}

void ProgramCache::dropOldest() const {
  const std::vector<fs::path> files = filesOf(m_folder);
  if (files.size() <= m_mostFiles) return;
  std::error_code ignored;
  fs::remove(*std::ranges::min_element(files, {}, lastUse), ignored);
}

}  // namespace fuseline::cuda
