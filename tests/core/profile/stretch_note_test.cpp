// Notes about time ranges of a timeline: one per range, in order, next to the run's file and in it.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stretch_note.h"

#include "core/profile/run_file.h"
#include "core/profile/run_folder.h"
#include "core/support/field_table.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <fstream>

namespace fuseline::testing {
namespace {

const StretchNote kNote{.variant = "fused", .startNs = 12300.5, .endNs = 15600.0, .text = "the copy waits"};

RunRecord emptyRun() { return {.createdWith = "test", .pipelineName = "mlp", .pipeline = Json::object()}; }

TEST(StretchNotes, ReplaceWhatWasSaidOfTheSameStretch) {
  std::vector<StretchNote> notes;
  putStretchNote(notes, kNote);
  StretchNote other = kNote;
  other.variant.clear();
  putStretchNote(notes, other);
  other.text = "else";
  putStretchNote(notes, other);
  EXPECT_EQ(notes, (std::vector{kNote, other}));
  other.text.clear();
  putStretchNote(notes, other);
  EXPECT_EQ(notes, std::vector{kNote});
}

TEST(StretchNotesProperty, StandByWhenTheyBeginAndComeBackFromJson) {
  EXPECT_TRUE(rc::check([] {
    std::vector<StretchNote> notes;
    const auto moments = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50));
    for (const int moment : moments)
      putStretchNote(notes, {.startNs = moment / 3.0, .endNs = moment + 1.0, .text = std::to_string(moment)});
    RC_ASSERT(std::ranges::is_sorted(notes, {}, &StretchNote::startNs));
    const Json json = Json::parse(Json{{"notes", fieldJson(notes)}}.dump());
    JsonFields fields(json, "");
    std::vector<StretchNote> again;
    readField(fields, "notes", again, Presence::Required);
    RC_ASSERT(!fields.error());
    RC_ASSERT(again == notes);
  }));
}

TEST(StretchNotes, AreInTheRunAndBesideItsFile) {
  const TemporaryFolder folder;
  RunRecord record = emptyRun();
  record.stretchNotes = {kNote};
  const auto run = folder / "a.fuserun";
  ASSERT_TRUE(saveRunRecord(record, run));
  EXPECT_EQ(loadNotedRun(run)->stretchNotes, record.stretchNotes);
  const StretchNote beside{.startNs = 1.0, .endNs = 2.0, .text = "beside"};
  ASSERT_TRUE(saveStretchNotes(run, {beside}));
  ASSERT_TRUE(saveRunNote(folder.path(), "a.fuserun", {}));
  EXPECT_EQ(loadNotedRun(run)->stretchNotes, std::vector{beside}) << "a note of the run leaves them";
  ASSERT_TRUE(saveStretchNotes(run, {}));
  EXPECT_TRUE(loadNotedRun(run)->stretchNotes.empty()) << "taken away, they do not come back from the file";
  EXPECT_FALSE(loadRunNotes(folder.path())->at("a.fuserun").isMark());
}

/// Programs that do not know of stretches read "rows" and leave other fields as they are.
TEST(StretchNotes, StandBesideFieldsOfOlderPrograms) {
  const TemporaryFolder folder;
  const auto run = folder / "a.fuserun";
  ASSERT_TRUE(saveRunRecord(emptyRun(), run));
  ASSERT_TRUE(saveRowNotes(run, {{.step = "fc", .phase = "forward", .text = "slow"}}));
  ASSERT_TRUE(saveStretchNotes(run, {kNote}));
  std::ifstream file(folder / "notes.json");
  const Json item = Json::parse(file)["notes"][0];
  EXPECT_EQ(item["file"], "a.fuserun");
  EXPECT_EQ(item["rows"][0]["text"], "slow");
  EXPECT_EQ(item["stretches"][0]["startNs"], 12300.5);
  EXPECT_TRUE(loadRunNotes(folder.path())->at("a.fuserun").isMark());
}

TEST(StretchNotes, AreALineForPeople) {
  EXPECT_EQ(stretchNoteLine(kNote), "fused, 12.3 us to 15.6 us: the copy waits");
  EXPECT_EQ(stretchNoteLine({.startNs = 0, .endNs = 1e6, .text = "a"}), "all plans, 0 ns to 1.00 ms: a");
}

}  // namespace
}  // namespace fuseline::testing
