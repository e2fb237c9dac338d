// Writes and reads run files. They come from other machines, so nothing in them is taken for granted.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"

#include "core/profile/run_page.h"
#include "core/support/atomic_file.h"
#include "core/support/foreign_file.h"
#include "core/support/json_fields.h"
#include "core/support/read_file.h"

#include <cctype>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

// A traced run of a large pipeline has some MiB.
constexpr std::size_t kMaxMiB = 256;
constexpr std::size_t kHeadBytes = 256;
constexpr const char* kOrigin = "`fuseline run PIPELINE -o RUN.fuserun` writes run files.";
constexpr const char* kPageOrigin = "`fuseline export RUN.fuserun --to html -o RUN.html` writes pages with a run.";

Result<RunRecord> recordFromText(std::string_view text) {
  if (isPage(text)) {
    const std::optional<std::string_view> run = runTextOf(text);
    if (!run) return Error{fmt::format("This page contains no run. {}", kPageOrigin)};
    text = *run;
  }
  const Result<Json> json = parseJson(text);
  if (!json) return Error{fmt::format("{} {}", json.error().message, kOrigin)};
  return runRecordFromJson(*json);
}

}  // namespace

Result<RunRecord> loadRunRecord(const std::filesystem::path& path) {
  const Result<std::string> text = readWholeFile(path, {.what = "run file", .maxMiB = kMaxMiB});
  if (!text) {
    const std::optional<std::string> foreign = foreignFileText(path);
    return foreign ? Error{fmt::format("{}: {} {}", path.string(), *foreign, kOrigin)} : text.error();
  }
  Result<RunRecord> record = recordFromText(*text);
  if (record) return record;
  if (const std::optional<std::string> foreign = foreignFileText(std::string_view(*text)))
    return Error{fmt::format("{}: {} {}", path.string(), *foreign, kOrigin)};
  return Error{fmt::format("{}: {}", path.string(), record.error().message)};
}

Result<void> saveRunRecord(const RunRecord& record, const std::filesystem::path& path) {
  const std::string text = toJson(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return writeFileAtomically(path, [&](std::ostream& file) { file << text; });
}

/// The first bytes of a pipe cannot be read twice.
bool holdsRun(const std::filesystem::path& path) {
  if (std::error_code code; !std::filesystem::is_regular_file(path, code)) return path.extension() == ".fuserun";
  std::ifstream file(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (isPage(head)) return head.find(kRunPageMark) != std::string::npos;
  std::erase_if(head, [](unsigned char c) { return std::isspace(c) != 0; });
  return head.starts_with(R"({"format":"fuseline-run")");
}

}  // namespace fuseline
