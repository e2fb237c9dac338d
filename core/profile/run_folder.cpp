// Reads and writes folders of runs.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_folder.h"

#include "core/profile/run_file.h"
#include "core/quant/recipe.h"
#include "core/support/atomic_file.h"
#include "core/support/field_table.h"
#include "core/support/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <regex>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNotesFile = "notes.json";
constexpr const char* kNotesFormat = "fuseline-run-notes";
constexpr const char* kEnding = ".fuserun";
constexpr std::size_t kMaxNotesMiB = 16;

Result<RunNotes> notesFromText(std::string_view text) {
  const Result<Json> json = parseJson(text);
  if (!json) return json.error();
  RunNotes notes;
  JsonFields fields(*json, "");
  std::string format;
  fields.read("format", format);
  if (!fields.error() && format != kNotesFormat) fields.refuse("format", fmt::format("expected \"{}\"", kNotesFormat));
  fields.readObjects("notes", [&](JsonFields& item) {
    std::string file;
    RunNote note;
    item.read("file", file);
    item.read("text", note.text, Presence::Optional);
    item.read("isStarred", note.isStarred, Presence::Optional);
    readField(item, "rows", note.rows, Presence::Optional);
    readField(item, "stretches", note.stretches, Presence::Optional);
    notes[file] = std::move(note);
  });
  if (fields.error()) return *fields.error();
  return notes;
}

Json emptyList() { return {{"format", kNotesFormat}, {"notes", Json::array()}}; }

/// The list as stored, so that fields of newer programs are preserved. Precondition: it has been read successfully.
Json listIn(const fs::path& folder) {
  const Result<std::string> text =
      readWholeFile(folder / kNotesFile, {.what = "list of notes", .maxMiB = kMaxNotesMiB});
  Result<Json> json = text ? parseJson(*text) : Result<Json>(text.error());
  return json ? std::move(*json) : emptyList();
}

Json::iterator itemOf(Json& items, const std::string& fileName) {
  return std::find_if(items.begin(), items.end(), [&](const Json& item) { return item.value("file", "") == fileName; });
}

void setNote(Json& items, const std::string& fileName, const RunNote& note) {
  auto item = itemOf(items, fileName);
  if (item == items.end()) item = items.insert(items.end(), Json{{"file", fileName}});
  (*item)["text"] = note.text;
  (*item)["isStarred"] = note.isStarred;
  if (note.rows) (*item)["rows"] = fieldJson(*note.rows);
  if (note.stretches) (*item)["stretches"] = fieldJson(*note.stretches);
  if (note.isEmpty() && !item->contains("rows") && !item->contains("stretches")) items.erase(item);
}

Result<void> writeNotes(const fs::path& folder, const Json& list) {
  const std::string text = list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return writeFileAtomically(folder / kNotesFile, [&](std::ostream& file) { file << text; });
}

/// The rule set that a pipeline requests.
std::optional<RuleBook> ownRules(const Json& pipeline) {
  const Json fusion = pipeline.is_object() ? pipeline.value("fusion", Json()) : Json();
  const Json rules = fusion.is_object() ? fusion.value("rules", Json()) : Json();
  return rules.is_string() ? enumNamed<RuleBook>(rules.get<std::string>()) : RunSpec().rules;
}

/// Is it a run that the program named, and that was not renamed?
bool isNamedByTime(const fs::path& file) {
  static const std::regex kPattern(R"(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?\.fuserun)");
  return std::regex_match(file.filename().string(), kPattern);
}

/// Reserves an empty file with the file's own name, or with a number appended if that name is taken: no other program
/// takes it then.
Result<fs::path> reserveNameLike(const fs::path& file, const fs::path& folder) {
  fs::path free = folder / file.filename();
  for (int number = 2;; ++number) {
    if (std::FILE* reserved = std::fopen(free.c_str(), "wx")) {
      std::fclose(reserved);
      return free;
    }
    if (errno != EEXIST) return Error{fmt::format("{} cannot be written: {}.", free.string(), std::strerror(errno))};
    free = folder / fmt::format("{}-{}{}", file.stem().string(), number, kEnding);
  }
}

fs::path nameByTime() { return fmt::format("{:%Y-%m-%d_%H-%M-%S}{}", fmt::gmtime(std::time(nullptr)), kEnding); }

Result<void> copyOver(const fs::path& file, const fs::path& target) {
  std::error_code error;
  fs::copy_file(file, target, fs::copy_options::overwrite_existing, error);
  if (!error) return {};
  return Error{fmt::format("{} cannot be copied to {}: {}.", file.string(), target.string(), error.message())};
}

Result<void> takeNoteAlong(const fs::path& file, const fs::path& target) {
  const Result<RunNotes> notes = loadRunNotes(file.parent_path());
  const std::string name = file.filename().string();
  if (!notes || !notes->contains(name)) return {};
  return saveRunNote(target.parent_path(), target.filename().string(), notes->at(name));
}

/// A note of a file that is gone does no harm.
Result<void> removeMoved(const fs::path& file) {
  std::error_code error;
  if (fs::remove(file, error)) {
    (void)forgetRunNote(file.parent_path(), file.filename().string());
    return {};
  }
  return Error{fmt::format("{} cannot be moved, because it cannot be deleted: {}.", file.string(), error.message())};
}

/// Also to another disk. Where a part of it fails the file is where it was, and nowhere else.
Result<void> moveRun(const fs::path& file, const fs::path& to, const FileMoved& onMoved) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return Error{fmt::format("{} cannot be made: {}.", to.string(), error.message())};
  const Result<fs::path> target = reserveNameLike(file, to);
  if (!target) return target.error();
  Result<void> moved = copyOver(file, *target);
  if (moved) moved = takeNoteAlong(file, *target);
  if (moved) moved = removeMoved(file);
  if (!moved) {
    fs::remove(*target, error);
    (void)forgetRunNote(to, target->filename().string());
    return moved;
  }
  if (onMoved) onMoved(file, *target);
  return {};
}

/// Undated entries, such as broken files, come last.
std::string_view timeOf(const RunEntry& entry) {
  return entry.summary ? std::string_view(entry.summary->measuredAt) : std::string_view();
}

bool isNewer(const RunEntry& a, const RunEntry& b) {
  // Records tell minutes, names seconds.
  return std::pair(timeOf(a), a.file.stem()) > std::pair(timeOf(b), b.file.stem());
}

/// The notes file. If it cannot be read, it is not known which runs it marks.
bool areNotes(const RunEntry& entry) { return entry.file.filename() == kNotesFile; }

/// Without the empty ones: names that another program has reserved, to write a record there.
std::vector<fs::path> runFilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == kEnding && it->file_size(ignored) > 0) files.push_back(it->path());
  return files;
}

bool hasOwnRecipe(const RunRecord& record) {
  const Json own = record.pipeline.is_object() ? record.pipeline.value("recipe", Json()) : Json();
  if (own.is_null()) return record.recipe.is_null() && record.settings.recipe == builtinRecipes().front().name;
  const Result<Recipe> recipe = recipeFromJson(own);
  return recipe && toJson(*recipe) == record.recipe;
}

}  // namespace

RunSummary summaryFor(const RunRecord& record) {
  const ComparisonRow row = compareSamples(record, "", &VariantRecord::endToEndNs);
  return {.measuredAt = record.fact("measured at"),
          .title = record.title(),
          .settings = record.settings,
          .device = record.deviceName(),
          .pipelineHash = record.pipelineHash,
          .unfused = row.unfused,
          .fused = row.fused,
          .speedup = row.speedup,
          .switches = record.switches,
          .hasOwnRecipe = hasOwnRecipe(record),
          .hasOtherRules = record.settings.rules != ownRules(record.pipeline),
          .isPartial = record.isPartial};
}

fs::path runFolderOf(const fs::path& pipeline) {
  fs::path folder = pipeline;
  return folder.replace_extension(".runs");
}

Result<RunNotes> loadRunNotes(const fs::path& folder) {
  const fs::path path = folder / kNotesFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return RunNotes{};
  const Result<std::string> text = readWholeFile(path, {.what = "list of notes", .maxMiB = kMaxNotesMiB});
  if (!text) return text.error();
  Result<RunNotes> notes = notesFromText(*text);
  if (notes) return notes;
  return Error{fmt::format("{}: {} The runs themselves are not affected.", path.string(), notes.error().message)};
}

Result<void> saveRunNote(const fs::path& folder, const std::string& fileName, const RunNote& note) {
  const Result<RunNotes> notes = loadRunNotes(folder);
  const bool isThere = notes && notes->contains(fileName);
  if (note.isEmpty() && !isThere) return {};
  std::error_code ignored;
  if (!notes) fs::rename(folder / kNotesFile, folder / (std::string(kNotesFile) + ".broken"), ignored);
  Json list = notes ? listIn(folder) : emptyList();
  setNote(list["notes"], fileName, note);
  return writeNotes(folder, list);
}

Result<void> forgetRunNote(const fs::path& folder, const std::string& fileName) {
  const Result<RunNotes> notes = loadRunNotes(folder);
  if (!notes || !notes->contains(fileName)) return {};
  Json list = listIn(folder);
  list["notes"].erase(itemOf(list["notes"], fileName));
  return writeNotes(folder, list);
}

Result<void> saveRowNotes(const fs::path& run, const std::vector<RowNote>& rows) {
  Result<RunNotes> notes = loadRunNotes(run.parent_path());
  if (!notes) return notes.error();
  const std::string name = run.filename().string();
  RunNote& note = (*notes)[name];
  note.rows = rows;
  return saveRunNote(run.parent_path(), name, note);
}

Result<void> saveStretchNotes(const fs::path& run, const std::vector<StretchNote>& stretches) {
  Result<RunNotes> notes = loadRunNotes(run.parent_path());
  if (!notes) return notes.error();
  const std::string name = run.filename().string();
  RunNote& note = (*notes)[name];
  note.stretches = stretches;
  return saveRunNote(run.parent_path(), name, note);
}

/// Notes that cannot be read keep no run from being opened.
Result<RunRecord> loadNotedRun(const fs::path& path) {
  Result<RunRecord> record = loadRunRecord(path);
  const Result<RunNotes> notes = loadRunNotes(fs::absolute(path).parent_path());
  if (!record || !notes) return record;
  const auto note = notes->find(path.filename().string());
  if (note == notes->end()) return record;
  if (!note->second.text.empty()) record->note = note->second.text;
  if (note->second.rows) record->rowNotes = *note->second.rows;
  if (note->second.stretches) record->stretchNotes = *note->second.stretches;
  return record;
}

Result<fs::path> addRun(const fs::path& folder, const RunRecord& record) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{fmt::format("{} cannot be made: {}.", folder.string(), error.message())};
  const Result<fs::path> file = reserveNameLike(nameByTime(), folder);
  if (!file) return file.error();
  if (Result<void> saved = saveRunRecord(record, *file); !saved) {
    fs::remove(*file, error);
    return saved.error();
  }
  return *file;
}

Result<void> moveRuns(const fs::path& from, const fs::path& to, const FileMoved& onMoved) {
  Result<void> all;
  for (const fs::path& file : runFilesIn(from))
    if (Result<void> moved = moveRun(file, to, onMoved); !moved && all) all = std::move(moved);
  return all;
}

RunEntry RunFolderReader::entryOf(const fs::path& file) {
  std::error_code ignored;
  const auto changedAt = fs::last_write_time(file, ignored);
  const std::uintmax_t sizeBytes = fs::file_size(file, ignored);
  const auto known = m_known.find(file);
  if (known != m_known.end() && known->second.changedAt == changedAt && known->second.sizeBytes == sizeBytes)
    return known->second.entry;
  RunEntry entry{.file = file};
  const Result<RunRecord> record = loadRunRecord(file);
  if (record)
    entry.summary = summaryFor(*record);
  else
    entry.problem = record.error().message;
  m_known[file] = {.changedAt = changedAt, .sizeBytes = sizeBytes, .entry = entry};
  return entry;
}

std::vector<RunEntry> RunFolderReader::entriesIn(const fs::path& folder, const RunNotes& notes) {
  std::vector<RunEntry> entries;
  for (const fs::path& file : runFilesIn(folder)) {
    RunEntry& entry = entries.emplace_back(entryOf(file));
    if (const auto note = notes.find(file.filename().string()); note != notes.end()) entry.note = note->second;
  }
  return entries;
}

std::vector<RunEntry> RunFolderReader::read(std::span<const fs::path> folders) {
  std::vector<RunEntry> runs;
  std::vector<RunEntry> problems;
  for (const fs::path& folder : folders) {
    const Result<RunNotes> notes = loadRunNotes(folder);
    if (!notes) problems.push_back({.file = folder / kNotesFile, .problem = notes.error().message});
    std::ranges::move(entriesIn(folder, notes ? *notes : RunNotes{}), std::back_inserter(runs));
  }
  std::ranges::sort(runs, isNewer);
  std::ranges::move(problems, std::back_inserter(runs));
  return runs;
}

std::vector<fs::path> runsToDrop(const std::vector<RunEntry>& entries, std::size_t numKept) {
  std::vector<fs::path> candidates;
  if (std::ranges::any_of(entries, areNotes)) return candidates;
  for (const RunEntry& entry : entries)
    if (entry.summary && !entry.note.isMark() && isNamedByTime(entry.file)) candidates.push_back(entry.file);
  candidates.erase(candidates.begin(),
                   candidates.begin() + static_cast<std::ptrdiff_t>(std::min(numKept, candidates.size())));
  return candidates;
}

}  // namespace fuseline
