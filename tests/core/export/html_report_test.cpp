// Reports: pages that are whole, load nothing, take no name for markup, and hold the run that they show.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_report.h"
#include "core/document/file_format.h"
#include "core/export/fusion_misses.h"
#include "core/export/html.h"
#include "core/profile/run_file.h"
#include "core/support/atomic_file.h"
#include "tests/core/export/sample_runs.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <regex>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// The content between the tags, without style and scripts.
std::string withoutScripts(const std::string& page) {
  return std::regex_replace(page, std::regex("<(style|script)[^>]*>[^]*?</\\1>"), "");
}

/// Names of elements that are opened and not closed, or the reverse.
std::vector<std::string> unbalanced(const std::string& page) {
  const std::string markup = withoutScripts(page);
  const std::regex tag("<(/?)([a-z0-9]+)[^>]*>");
  std::vector<std::string> open;
  for (std::sregex_iterator at(markup.begin(), markup.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (name == "meta" || name == "br") continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
    } else if (!open.empty() && open.back() == name) {
      open.pop_back();
    } else {
      open.push_back("/" + name);
    }
  }
  return open;
}

RunRecord hostileRun() {
  const std::string name = "<script>alert('1')</script>&\"`<!--";
  RunRecord record = comparedRun();
  record.pipelineName = record.createdWith = record.timingNote = record.settings.recipe = name;
  record.environment = {{name, name}};
  record.recipe = {{name, {name}}};
  record.pipeline = {{name, name}};
  record.switches.without = {name};
  record.note = name;
  record.rowNotes = {{name, name, name}};
  record.stretchNotes = {{.variant = name, .startNs = 1.0, .endNs = 2.0, .text = name}};
  for (VariantRecord& variant : record.variants) {
    variant.launching = name;
    for (StepRecord& step : variant.steps) {
      step.kernel = step.writes = step.note = name;
      step.ways = step.absorbs = {name};
      step.activities = {{name, name, {1.0}}};
    }
    variant.steps[0].name = variant.steps[0].phase = name;
  }
  return record;
}

TEST(HtmlReport, BeginsWithWhatIsDoubtful) {
  RunRecord record = comparedRun();
  EXPECT_EQ(count(exported("html", record), "class=\"doubt\""), 0u);
  record.environment.emplace_back("other programs", "48 % of the CPUs");
  const std::string page = exported("html", record);
  const std::size_t place = page.find("Other programs used 48 % of the CPUs");
  EXPECT_LT(place, page.find("<h2>Plans</h2>"));
}

TEST(HtmlReport, ShowsWhatTheUserSays) {
  RunRecord record = comparedRun();
  record.note = "before the change";
  record.rowNotes = {{.step = "norm", .phase = "forward", .text = "slower than it should be"}};
  const std::string shown = withoutScripts(exported("html", record));
  EXPECT_EQ(count(shown, "<blockquote>before the change</blockquote>"), 1u);
  EXPECT_EQ(count(shown, "slower than it should be"), 1u);
  const std::string markdown = exported("markdown", record);
  EXPECT_EQ(count(markdown, "`before the change`"), 1u);
  EXPECT_EQ(count(markdown, "- `norm` (`forward`): `slower than it should be`"), 1u);
}

TEST(HtmlReport, ListsNotesOnTheTimeline) {
  RunRecord record = comparedRun();
  EXPECT_EQ(count(withoutScripts(exported("html", record)), "Notes on the timeline"), 0u);
  record.stretchNotes = {{.variant = "fused", .startNs = 1000.0, .endNs = 2000.0, .text = "waits <here>"}};
  const std::string shown = withoutScripts(exported("html", record));
  EXPECT_EQ(count(shown, "<h2>Notes on the timeline</h2>"), 1u);
  EXPECT_EQ(count(shown, "fused, 1.00 us to 2.00 us: waits &lt;here&gt;"), 1u);
  EXPECT_EQ(count(exported("markdown", record), "- `fused, 1.00 us to 2.00 us: waits <here>`"), 1u);
}

TEST(HtmlReport, SetsTheRunBesideOthers) {
  NamedRun slower{.name = "old <i>.fuserun", .record = comparedRun()};
  slower.record.note = "first try";
  VariantRecord& fused = slower.record.variants[1];
  for (double& ns : fused.endToEndNs) ns *= 4.0;
  fused.steps.back().name = "vanished";
  RunRecord unfused = comparedRun();
  unfused.variants.pop_back();
  unfused.variants[0].name = "else";
  const std::string page = htmlReportBeside(comparedRun(), std::vector{slower, NamedRun{"other", unfused}});
  const std::string shown = withoutScripts(page);
  EXPECT_EQ(unbalanced(page), std::vector<std::string>());
  EXPECT_EQ(count(shown, "<h3>old &lt;i&gt;.fuserun</h3><p>first try</p>"), 1u);
  EXPECT_EQ(count(shown, ">-75.0 %</td>"), 1u) << "end to end";
  EXPECT_EQ(count(shown, "<td>vanished</td>"), 1u);
  EXPECT_EQ(count(shown, ">gone</td>"), 1u);
  EXPECT_EQ(count(shown, ">new</td>"), 1u);
  EXPECT_EQ(count(shown, "one run has only the fused plan"), 1u);
  EXPECT_EQ(count(withoutScripts(exported("html", comparedRun())), "Against other runs"), 0u);
}

TEST(HtmlReport, TakesNoNameForMarkup) {
  const std::string page = exported("html", hostileRun());
  EXPECT_EQ(count(page, "<script"), 2u) << "the run and the script of the page";
  EXPECT_EQ(count(page, "</script"), 2u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  const std::string shown = withoutScripts(page);
  EXPECT_EQ(count(shown, "alert('1')"), 0u);
  EXPECT_GT(count(shown, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;`&lt;!--"), 10u);
  EXPECT_EQ(unbalanced(page), std::vector<std::string>());
}

TEST(HtmlReport, IsReadAsTheRun) {
  const testing::TemporaryFolder folder;
  for (const RunRecord& record : {comparedRun(), hostileRun()}) {
    const std::string page = exported("html", record);
    ASSERT_TRUE(writeFileAtomically(folder / "a.html", [&](auto& file) { file << page; }));
    EXPECT_TRUE(holdsRun(folder / "a.html"));
    const Result<RunRecord> read = loadRunRecord(folder / "a.html");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(toJson(*read), toJson(record));
    EXPECT_EQ(exported("html", *read), page);
  }
}

TEST(HtmlReport, LoadsNothing) {
  const std::string page = exported("html", comparedRun());
  for (const char* way : {"://", " src=", "href=\"", "url(", "@import", "<link", "<iframe", "fetch("})
    EXPECT_EQ(page.find(way), std::string::npos) << way;
  EXPECT_LT(page.size(), 64u << 10u);
}

TEST(HtmlReport, IsWholeWhateverWasMeasured) {
  RunRecord record = comparedRun();
  record.variants.pop_back();
  record.settings.timing = StepTiming::None;
  record.variants[0].steps[1].isView = true;
  for (StepRecord& step : record.variants[0].steps) step.samplesNs.clear();
  for (const RunRecord& each : {record, RunRecord{}}) {
    const std::string page = exported("html", each);
    EXPECT_EQ(unbalanced(page), std::vector<std::string>());
    EXPECT_NE(page.find("<strong>not measured</strong>"), std::string::npos);
    EXPECT_NE(page.find("Only one plan was measured, so there is no speed-up."), std::string::npos);
  }
}

TEST(HtmlReport, HasEachEntryWithItsOps) {
  const std::string page = exported("html", comparedRun());
  EXPECT_EQ(count(page, "<tbody>"), 2u) << "norm, and the epilogue";
  EXPECT_NE(page.find("<li class=\"fused\"><b>Epilogue</b><span class=\"ops\"><i>fc1</i><i>act</i></span>"
                      "<span class=\"times\">4.000 → 2.000 us, <span class=\"good\">2.00x</span></span></li>"),
            std::string::npos);
  EXPECT_NE(page.find("<span class=\"unfused\" style=\"width:100.00%\"></span><span class=\"fused\" "
                      "style=\"width:50.00%\"></span>"),
            std::string::npos);
}

TEST(Html, IsReadAsTheTextItWas) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    std::string read = Html::text(text).toString();
    RC_ASSERT(read.find_first_of("<>\"'") == std::string::npos);
    for (const auto& [entity, plain] :
         {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
      for (std::size_t at = read.find(entity); at != std::string::npos; at = read.find(entity, at + 1))
        read.replace(at, std::string(entity).size(), plain);
    const auto isControl = [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7F'; };
    if (std::ranges::none_of(text, isControl)) RC_ASSERT(read == text);
  }));
}

/// A run of a template, as far as planning it again goes.
RunRecord runOf(const std::string& name) {
  RunRecord record = comparedRun();
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) record.pipeline = Json::parse(entry.text);
  return record;
}

TEST(FusionMisses, SayWhatTheRunSwitchedOff) {
  RunRecord record = runOf("linear-bias");
  record.switches.without = {"ForwardLinearBiasActivation"};
  const FusionMisses found = fusionMissesOf(record);
  EXPECT_EQ(found.unknown, "");
  const auto miss = std::ranges::find(found.misses, "ForwardLinearBiasActivation", &FusionMiss::rule);
  ASSERT_NE(miss, found.misses.end());
  EXPECT_EQ(miss->outcome, "switched off");
  EXPECT_FALSE(found.differing.empty()) << "the record's steps are those of another pipeline";
}

TEST(FusionMisses, OfAPipelineThatCannotBeUsedAreNotKnown) {
  RunRecord record = comparedRun();
  record.pipeline = Json::object();
  EXPECT_TRUE(fusionMissesOf(record).unknown.starts_with("the pipeline in this run cannot be used: "))
      << fusionMissesOf(record).unknown;
}

}  // namespace
}  // namespace fuseline
