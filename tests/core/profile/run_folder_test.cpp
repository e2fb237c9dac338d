// Folders of runs: their lists, their notes, the runs that make room, and nothing is lost.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_folder.h"

#include "core/profile/run_file.h"
#include "core/quant/recipe.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using Files = std::vector<fs::path>;

/// Fused 2 ms, unfused 3 ms, in each of three rounds.
RunRecord recordAt(const std::string& time, const std::string& pipeline = "small") {
  RunRecord record{.createdWith = "a test", .pipelineName = pipeline, .pipelineHash = "fnv1a64:1"};
  record.pipeline = Json::object();
  record.settings.recipe = "MXFP8BlockScaling";
  record.environment = {{"device", "a GPU"}, {"measured at", time}};
  record.variants = {{.name = "unfused", .endToEndNs = {3e6, 3e6, 3e6}},
                     {.name = "fused", .endToEndNs = {2e6, 2e6, 2e6}}};
  return record;
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<RunEntry> readOne(const fs::path& folder) { return RunFolderReader().read({&folder, 1}); }

RunEntry entry(const std::string& file, RunNote note = {}) {
  return {.file = file, .note = std::move(note), .summary = RunSummary()};
}

TEST(RunFolder, StandsBesideThePipeline) {
  EXPECT_EQ(runFolderOf("/home/ada/llama.fuseline"), fs::path("/home/ada/llama.runs"));
  EXPECT_EQ(runFolderOf("/home/ada/llama.v2.fuseline"), fs::path("/home/ada/llama.v2.runs"));
}

TEST(RunFolder, ListsWhatWasMeasuredTheNewestFirst) {
  const TemporaryFolder folder;
  const fs::path runs = folder / "small.runs";
  ASSERT_TRUE(addRun(runs, recordAt("2026-11-25 09:30:00 UTC")));
  ASSERT_TRUE(addRun(runs, recordAt("2026-11-25 10:30:00 UTC")));  // most likely in the same second
  const std::vector<RunEntry> entries = readOne(runs);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].summary->measuredAt, "2026-11-25 10:30:00 UTC");
  EXPECT_EQ(entries[1].summary->measuredAt, "2026-11-25 09:30:00 UTC");
  const RunSummary& summary = *entries[0].summary;
  EXPECT_EQ(summary.device, "a GPU");
  EXPECT_EQ(summary.settings.recipe, "MXFP8BlockScaling");
  EXPECT_EQ(summary.pipelineHash, "fnv1a64:1");
  EXPECT_EQ(summary.unfused.median, 3e6);
  EXPECT_EQ(summary.fused.median, 2e6);
  EXPECT_EQ(summary.speedup.median, 1.5);
  EXPECT_TRUE(summary.hasBoth());
}

TEST(RunFolder, ListsWhichRulesWereNotThePipelinesOwn) {
  RunRecord record = recordAt("2026-11-25 09:30:00 UTC");
  EXPECT_FALSE(summaryFor(record).hasOtherRules) << "a pipeline that does not say asks for all";
  record.settings.rules = RuleBook::Te;
  EXPECT_TRUE(summaryFor(record).hasOtherRules);
  record.pipeline = Json{{"fusion", {{"rules", "te"}}}};
  EXPECT_FALSE(summaryFor(record).hasOtherRules);
  record.switches.without = {"BackwardLinearBias"};
  EXPECT_EQ(summaryFor(record).switches, record.switches);
}

TEST(RunFolder, ThatDoesNotExistIsEmpty) { EXPECT_TRUE(readOne("/nonexistent/small.runs").empty()); }

TEST(RunFolder, ThatCannotBeMadeIsASentence) {
  const TemporaryFolder folder;
  write(folder / "small.runs", "a file, not a folder");
  const auto added = addRun(folder / "small.runs", recordAt("2026-11-25 09:30:00 UTC"));
  ASSERT_FALSE(added);
  EXPECT_TRUE(added.error().message.find((folder / "small.runs").string()) != std::string::npos)
      << added.error().message;
}

TEST(RunFolder, ABrokenFileIsListedWithItsErrorAndStays) {
  const TemporaryFolder folder;
  write(folder / "broken.fuserun", "{");
  ASSERT_TRUE(addRun(folder.path(), recordAt("2026-11-25 09:30:00 UTC")));
  const std::vector<RunEntry> entries = readOne(folder.path());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_TRUE(entries[0].summary);
  EXPECT_EQ(entries[1].file, folder / "broken.fuserun");
  EXPECT_FALSE(entries[1].summary);
  EXPECT_TRUE(entries[1].problem.find("broken.fuserun") != std::string::npos) << entries[1].problem;
  EXPECT_TRUE(runsToDrop(entries, 0).size() == 1U && fs::exists(folder / "broken.fuserun"));
}

/// Another program has taken the name, and is about to write there.
TEST(RunFolder, AnEmptyFileIsNoRunYet) {
  const TemporaryFolder folder;
  write(folder / "new.fuserun", "");
  EXPECT_TRUE(readOne(folder.path()).empty());
}

TEST(RunFolder, AFileThatHasChangedIsReadAgain) {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.fuserun";
  RunFolderReader reader;
  write(file, "{");
  EXPECT_FALSE(reader.read({&folder.path(), 1}).front().summary);
  ASSERT_TRUE(saveRunRecord(recordAt("2026-11-25 09:30:00 UTC"), file));
  EXPECT_TRUE(reader.read({&folder.path(), 1}).front().summary);
}

TEST(RunNotes, AreKeptByFileAndGoWhenTheyAreEmpty) {
  const TemporaryFolder folder;
  const RunNote starred{.text = "bias in bf16, \"as before\"", .isStarred = true};
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", starred));
  ASSERT_TRUE(saveRunNote(folder.path(), "b.fuserun", {.text = "slow"}));
  EXPECT_EQ(loadRunNotes(folder.path())->at("a.fuserun"), starred);
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {}));
  EXPECT_EQ(*loadRunNotes(folder.path()), (RunNotes{{"b.fuserun", {.text = "slow"}}}));
}

TEST(RunNotes, OfStepsStandBesideTheFileAndOutdoThoseInIt) {
  const TemporaryFolder folder;
  RunRecord record = recordAt("2026-11-25 09:30:00 UTC");
  record.note = "in the file";
  record.rowNotes = {{.step = "fc", .phase = "forward", .text = "in the file"}};
  const fs::path run = *addRun(folder.path(), record);
  EXPECT_EQ(loadNotedRun(run)->rowNotes, record.rowNotes);
  ASSERT_TRUE(saveRowNotes(run, {{.step = "fc", .phase = "backward", .text = "beside"}}));
  ASSERT_TRUE(saveRunNote(folder.path(), run.filename().string(), {.text = "of the run", .isStarred = true}));
  RunRecord noted = *loadNotedRun(run);
  EXPECT_EQ(noted.note, "of the run");
  EXPECT_EQ(noted.noteOf("fc", "backward"), "beside") << "a note of the run leaves those of steps";
  EXPECT_EQ(noted.noteOf("fc", "forward"), "");
  EXPECT_TRUE(readOne(folder.path())[0].note.isStarred) << "and the other way round";
  ASSERT_TRUE(saveRowNotes(run, {}));
  EXPECT_TRUE(loadNotedRun(run)->rowNotes.empty()) << "taken away, they do not come back from the file";
  EXPECT_EQ(loadRunRecord(run)->rowNotes, record.rowNotes);
  ASSERT_TRUE(forgetRunNote(folder.path(), run.filename().string()));
  EXPECT_EQ(loadNotedRun(run)->note, "in the file");
}

TEST(RunNotes, KeepWhatNewerProgramsSay) {
  const TemporaryFolder folder;
  write(folder / "notes.json",
        R"({"format": "fuseline-run-notes", "since": 2, "notes": [{"file": "a.fuserun", "text": "old", "hue": 7}]})");
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {.text = "new"}));
  ASSERT_TRUE(saveRunNote(folder.path(), "b.fuserun", {.text = "other"}));
  std::ifstream file(folder / "notes.json");
  const Json json = Json::parse(file);
  EXPECT_EQ(json["since"], 2);
  EXPECT_EQ(json["notes"][0]["hue"], 7);
  EXPECT_EQ(json["notes"][0]["text"], "new");
  EXPECT_EQ(json["notes"][1]["file"], "b.fuserun");
}

TEST(RunNotes, LeaveAForeignFileOfTheSameNameAlone) {
  const TemporaryFolder folder;
  const fs::path run = *addRun(folder.path(), recordAt("2026-11-25 09:30:00 UTC"));
  write(folder / "notes.json", R"(["buy milk"])");
  const Result<void> saved = saveRowNotes(run, {{.step = "fc", .phase = "forward", .text = "slow"}});
  ASSERT_FALSE(saved);
  EXPECT_TRUE(saved.error().message.find("notes.json") != std::string::npos) << saved.error().message;
  EXPECT_TRUE(loadNotedRun(run)) << "the run can be read all the same";
  EXPECT_FALSE(fs::exists(folder / "notes.json.broken"));
}

TEST(RunNotes, ThatSayNothingAreNoFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {}));
  EXPECT_FALSE(fs::exists(folder / "notes.json"));
}

TEST(RunNotes, ThatCannotBeReadAreToldAndNotOverwritten) {
  const TemporaryFolder folder;
  write(folder / "notes.json", R"({"format": "shopping list"})");
  ASSERT_TRUE(addRun(folder.path(), recordAt("2026-11-25 09:30:00 UTC")));
  const std::vector<RunEntry> entries = readOne(folder.path());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_TRUE(entries[0].summary);
  EXPECT_EQ(entries[1].file.filename(), "notes.json");
  EXPECT_TRUE(entries[1].problem.find("fuseline-run-notes") != std::string::npos) << entries[1].problem;
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {}));
  EXPECT_FALSE(fs::exists(folder / "notes.json.broken"));
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {.text = "new"}));
  EXPECT_TRUE(fs::exists(folder / "notes.json.broken"));
  EXPECT_EQ(loadRunNotes(folder.path())->size(), 1U);
}

TEST(RunsToDrop, AreTheOldestThatNobodyMarkedOrNamed) {
  // The newest first, as they are read.
  const std::vector<RunEntry> entries = {entry("2026-11-25_09-05-00.fuserun"),
                                         entry("2026-11-25_09-04-00.fuserun", {.isStarred = true}),
                                         entry("2026-11-25_09-03-00.fuserun"),
                                         entry("the good one.fuserun"),
                                         entry("2026-11-25_09-02-00.fuserun", {.text = "before the change"}),
                                         entry("2026-11-25_09-01-00-2.fuserun"),
                                         {.file = "2026-11-25_09-00-00.fuserun", .problem = "It is broken."}};
  EXPECT_EQ(runsToDrop(entries, 2), Files{"2026-11-25_09-01-00-2.fuserun"});
  EXPECT_TRUE(runsToDrop(entries, 3).empty());
  EXPECT_EQ(runsToDrop(entries, 0).size(), 3U);
}

TEST(RunsToDrop, AreNoneWhereNobodyKnowsWhichWereMarked) {
  const TemporaryFolder folder;
  const auto run = addRun(folder.path(), recordAt("2026-11-25 09:30:00 UTC"));
  ASSERT_TRUE(run);
  ASSERT_TRUE(saveRunNote(folder.path(), run->filename().string(), {.isStarred = true}));
  EXPECT_TRUE(runsToDrop(readOne(folder.path()), 0).empty());
  write(folder / "notes.json", "{");
  EXPECT_TRUE(runsToDrop(readOne(folder.path()), 0).empty());
}

TEST(MoveRuns, TakesNotesAlongAndOverwritesNothing) {
  const TemporaryFolder folder;
  const fs::path from = folder / "from";
  const fs::path to = folder / "to";
  const auto first = addRun(from, recordAt("2026-11-25 09:30:00 UTC", "moved"));
  ASSERT_TRUE(first);
  const std::string name = first->filename().string();
  ASSERT_TRUE(saveRunNote(from, name, {.text = "mine"}));
  fs::create_directories(to);
  ASSERT_TRUE(saveRunRecord(recordAt("2026-11-25 08:00:00 UTC", "there before"), to / name));
  ASSERT_TRUE(moveRuns(from, to));
  EXPECT_TRUE(readOne(from).empty());
  const std::vector<RunEntry> entries = readOne(to);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].summary->title, "moved");
  EXPECT_EQ(entries[0].note.text, "mine");
  EXPECT_EQ(entries[1].summary->title, "there before");
  EXPECT_EQ(entries[1].note.text, "");
  EXPECT_TRUE(loadRunNotes(from)->empty());
}

TEST(MoveRuns, LeavesARunWhereItsNoteCannotGo) {
  const TemporaryFolder folder;
  const auto run = addRun(folder / "from", recordAt("2026-11-25 09:30:00 UTC"));
  ASSERT_TRUE(run);
  ASSERT_TRUE(saveRunNote(folder / "from", run->filename().string(), {.text = "mine"}));
  fs::create_directories(folder / "to" / "notes.json" / "in the way");
  fs::create_directories(folder / "to" / "notes.json.broken" / "in the way, too");
  EXPECT_FALSE(moveRuns(folder / "from", folder / "to"));
  EXPECT_EQ(readOne(folder / "from").front().note.text, "mine");
  for (const auto& left : fs::directory_iterator(folder / "to")) EXPECT_NE(left.path().extension(), ".fuserun");
}

TEST(RunNotes, ThatAreNestedWithoutEndAreASentence) {
  const TemporaryFolder folder;
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  write(folder / "notes.json", R"({"format": "fuseline-run-notes", "notes": [)" + deep + "]}");
  const Result<RunNotes> notes = loadRunNotes(folder.path());
  ASSERT_FALSE(notes);
  EXPECT_NE(notes.error().message.find("levels deep"), std::string::npos) << notes.error().message.substr(0, 200);
}

/// With its fields: a command that names the recipe only would lose them.
TEST(RunSummary, TellsTheRecipeOfThePipelineFromAnother) {
  RunRecord record;
  record.settings.recipe = "DelayedScaling";
  record.pipeline = {{"recipe", {{"name", "DelayedScaling"}, {"margin", 2}}}};
  record.recipe = toJson(*recipeFromJson(record.pipeline["recipe"]));
  EXPECT_TRUE(summaryFor(record).hasOwnRecipe);
  record.recipe = toJson(*recipeFromJson({{"name", "DelayedScaling"}}));
  EXPECT_FALSE(summaryFor(record).hasOwnRecipe);
  record.recipe = nullptr;  // an older program did not say
  EXPECT_FALSE(summaryFor(record).hasOwnRecipe);
  record.pipeline = Json::object();
  record.settings.recipe = "None";
  EXPECT_TRUE(summaryFor(record).hasOwnRecipe);
}

}  // namespace
}  // namespace fuseline
