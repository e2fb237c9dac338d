// A folder of runs next to a pipeline: NAME.runs with a run file each, and the user's notes about them in notes.json.
//
// Only the user deletes files that a user may miss: only unmarked runs that the program named itself are dropped to
// make room for others. A file that cannot be read is reported, and left alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Summary of a run for lists.
struct RunSummary {
  std::string measuredAt;  // "2026-11-25 09:30:00 UTC"; empty in older files
  std::string title;       // of the pipeline
  RunSpec settings;
  std::string device;
  std::string pipelineHash;
  SampleStats unfused;  // from end to end; count 0: not measured
  SampleStats fused;
  RatioStats speedup;          // unfused / fused
  RuleSwitches switches;       // in addition to the pipeline's own
  bool hasOwnRecipe = false;   // the pipeline's, with its fields and overrides
  bool hasOtherRules = false;  // rules differ from the pipeline's settings
  bool isPartial = false;

  bool hasBoth() const { return unfused.count > 0 && fused.count > 0; }
};
RunSummary summaryFor(const RunRecord& record);

/// A user's note about a run.
struct RunNote {
  std::string text;
  bool isStarred = false;
  std::optional<std::vector<RowNote>> rows = {};           // nothing: those in the run file are meant
  std::optional<std::vector<StretchNote>> stretches = {};  // likewise

  bool isEmpty() const { return text.empty() && !isStarred && !rows && !stretches; }
  /// Whether a user would miss the run.
  bool isMark() const {
    return !text.empty() || isStarred || (rows && !rows->empty()) || (stretches && !stretches->empty());
  }
  bool operator==(const RunNote&) const = default;
};
/// By the names of the run files.
using RunNotes = std::map<std::string, RunNote>;

/// A run file, or the error from reading it.
struct RunEntry {
  std::filesystem::path file;
  RunNote note;
  std::optional<RunSummary> summary;
  std::string problem;  // a sentence; empty: there is none
};

/// "dir/llama.runs" for "dir/llama.fuseline".
std::filesystem::path runFolderOf(const std::filesystem::path& pipeline);

/// Empty if there is no such file. Errors: it cannot be read, or is no list of notes; with the path.
Result<RunNotes> loadRunNotes(const std::filesystem::path& folder);
/// The others stay, as do the rows of this one where `note` has none, and fields of newer programs. A file that cannot
/// be read is kept as "notes.json.broken". Errors: those of writing.
Result<void> saveRunNote(const std::filesystem::path& folder, const std::string& fileName, const RunNote& note);
/// Also of its rows. Errors: those of writing.
Result<void> forgetRunNote(const std::filesystem::path& folder, const std::string& fileName);
/// Saves the notes about rows of a run, wherever its file is; the rest of its note is kept. Errors: those of writing,
/// and a file "notes.json" that is no list of notes, which is left alone.
Result<void> saveRowNotes(const std::filesystem::path& run, const std::vector<RowNote>& rows);
/// The same for time ranges of its timeline. Programs that do not know of these preserve them along with notes about
/// steps.
Result<void> saveStretchNotes(const std::filesystem::path& run, const std::vector<StretchNote>& stretches);
/// A run file with its notes: from notes.json next to the file, else from the file. Errors: as loadRunRecord().
Result<RunRecord> loadNotedRun(const std::filesystem::path& path);

/// Creates the folder if necessary, and a file named by the time: "2026-11-25_09-30-00.fuserun".
/// Errors: a sentence with the path.
Result<std::filesystem::path> addRun(const std::filesystem::path& folder, const RunRecord& record);

using FileMoved = std::function<void(const std::filesystem::path& from, const std::filesystem::path& to)>;
/// Moves every run of one folder to another, with its notes. Errors: the first one; the other runs are moved.
Result<void> moveRuns(const std::filesystem::path& from, const std::filesystem::path& to,
                      const FileMoved& onMoved = {});

/// Reads run files, and reads them again only when they have changed. For one thread.
class RunFolderReader {
 public:
  /// Every "*.fuserun" of the folders, the newest first, then notes that cannot be read. Folders need not exist.
  std::vector<RunEntry> read(std::span<const std::filesystem::path> folders);

 private:
  struct Known {
    std::filesystem::file_time_type changedAt;
    std::uintmax_t sizeBytes = 0;
    RunEntry entry;
  };
  RunEntry entryOf(const std::filesystem::path& file);
  std::vector<RunEntry> entriesIn(const std::filesystem::path& folder, const RunNotes& notes);

  std::map<std::filesystem::path, Known> m_known;
};

/// The oldest unmarked runs that addRun() named, so that `numKept` of these are left; none if the notes cannot be read.
/// `entries`: as read.
std::vector<std::filesystem::path> runsToDrop(const std::vector<RunEntry>& entries, std::size_t numKept);

}  // namespace fuseline
