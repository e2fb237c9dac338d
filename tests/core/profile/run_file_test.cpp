// Run files are read as they were written, and other files are refused with a sentence that begins with their path.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"

#include "core/profile/run_page.h"
#include "core/support/atomic_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

class RunFile : public ::testing::Test {
 protected:
  const std::filesystem::path& write(const std::string& text) {
    EXPECT_TRUE(writeFileAtomically(m_path, [&](std::ostream& file) { file << text; }));
    return m_path;
  }

  std::string refusalOf(const std::string& text) {
    const Result<RunRecord> record = loadRunRecord(write(text));
    const std::string head = m_path.string() + ": ";
    if (record) return "";
    return record.error().message.starts_with(head) ? record.error().message.substr(head.size()) : "no path";
  }

 private:
  TemporaryFolder m_folder;
  std::filesystem::path m_path = m_folder / "a.fuserun";
};

const std::string kOrigin = " `fuseline run PIPELINE -o RUN.fuserun` writes run files.";

TEST_F(RunFile, IsReadAsItWasWritten) {
  const Json json = toJson(RunRecord{.pipelineName = "mlp", .pipeline = Json::object()});
  const Result<RunRecord> record = loadRunRecord(write(json.dump(1)));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(toJson(*record), json);
}

/// Earlier versions wrote the optimizer's step as one of backward.
TEST_F(RunFile, HasItsOptimizerInAPassOfItsOwn) {
  RunRecord run{.variants = {{.name = "fused"}}, .rowNotes = {{"AdamW", "backward", "slow"}, {"fc", "backward", "a"}}};
  run.variants[0].steps = {{.name = "fc", .phase = "backward", .kernel = "BasicLinear"},
                           {.name = "AdamW", .phase = "backward", .kernel = "adamw"}};
  const Result<RunRecord> record = loadRunRecord(write(toJson(run).dump(1)));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->variants[0].steps[0].phase, "backward");
  EXPECT_EQ(record->variants[0].steps[1].phase, "optimizer");
  EXPECT_EQ(record->noteOf("AdamW", "optimizer"), "slow");
  EXPECT_EQ(record->noteOf("fc", "backward"), "a");
}

TEST_F(RunFile, ThatDoesNotExistIsNamed) {
  EXPECT_EQ(loadRunRecord("/nonexistent/a.fuserun").error().message,
            "Cannot read /nonexistent/a.fuserun: No such file or directory.");
  EXPECT_EQ(loadRunRecord("/").error().message, "Cannot read /: expected a run file, found a folder.");
}

TEST_F(RunFile, ThatIsNoJsonSaysWhere) {
  EXPECT_EQ(refusalOf("{\"format\" oops"), "Invalid JSON at byte 11." + kOrigin);
}

TEST_F(RunFile, OfAnotherFormatSaysWhichOneWasExpected) {
  EXPECT_EQ(refusalOf(R"({"format": "fuseline-pipeline"})"),
            R"(/format: expected "fuseline-run", found "fuseline-pipeline".)" + kOrigin);
}

TEST_F(RunFile, OfANewerProgramSaysWhatToDo) {
  Json json = toJson(RunRecord{});
  json["formatVersion"]["major"] = 2;
  EXPECT_EQ(
      refusalOf(json.dump()),
      "/formatVersion: the run has format 2, but this program reads up to 1. Use a newer Fuseline, or measure again.");
}

TEST_F(RunFile, ThatIsNestedWithoutEndIsRefusedBeforeItIsParsed) {
  EXPECT_EQ(refusalOf("{\"pipeline\": " + std::string(1'000'000, '[')),
            "It is nested more than 200 levels deep." + kOrigin);
  EXPECT_EQ(refusalOf("{\"a\": \"" + std::string(1000, '[') + "\\\"\"}").find("nested"), std::string::npos);
}

TEST_F(RunFile, IsReadFromAPage) {
  const RunRecord run{.pipelineName = "</script><!-- <script>alert(1)</script> \\ \" &lt;", .pipeline = Json::object()};
  const std::string element = runElement(run);
  EXPECT_EQ(element.rfind('<'), element.size() - std::string("</script>").size());
  EXPECT_EQ(element.find('<', 1), element.rfind('<')) << "no tag but its own: " << element;
  const Result<RunRecord> record = loadRunRecord(write("\n<!doctype html><p>a</p>" + element + element + "</html>"));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(toJson(*record), toJson(run));
}

TEST_F(RunFile, ThatIsAPageWithoutARunSaysWhichHaveOne) {
  const std::string refusal =
      "This page contains no run. `fuseline export RUN.fuserun --to html -o RUN.html` writes pages with a run.";
  EXPECT_EQ(refusalOf("<!doctype html><p>fuseline-run</p>"), refusal);
  const std::string element = runElement(RunRecord{});
  EXPECT_EQ(refusalOf("<html>" + element.substr(0, element.size() - 1)), refusal) << "it does not end";
  EXPECT_EQ(refusalOf("<script type=\"application/json\" id=\"fuseline-run\">{oops</script>"),
            "Invalid JSON at byte 2." + kOrigin);
}

TEST_F(RunFile, IsKnownByItsBeginningWhateverItsName) {
  EXPECT_TRUE(holdsRun(write(toJson(RunRecord{}).dump(2))));
  EXPECT_FALSE(holdsRun(write(R"({"format": "fuseline-pipeline"})")));
  EXPECT_TRUE(holdsRun(write("<!doctype html>" + std::string(kRunPageMark))));
  EXPECT_FALSE(holdsRun(write("<!doctype html><p>fuseline-run</p>")));
  EXPECT_FALSE(holdsRun(write("")));
  EXPECT_FALSE(holdsRun("/nonexistent/a.json"));
}

}  // namespace
}  // namespace fuseline
