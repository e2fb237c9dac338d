// Texts of files reach neither a terminal nor a service as commands.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/visible_stream.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <regex>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr const char* kHostile =
    "a\x1b[2J\r\n  ::error file=x::injected\n##[error]no\xc2\x9b"
    "2J";

std::string shown(const std::string& text, bool hasColour = false) {
  std::ostringstream target;
  cli::VisibleBuffer buffer(*target.rdbuf(), hasColour);
  std::ostream stream(&buffer);
  stream << text;
  std::string whole = target.str();
  std::ostringstream bytes;
  cli::VisibleBuffer single(*bytes.rdbuf(), false);
  for (const char c : text) single.sputc(c);
  const bool isOneByte = text.find('\xc2') == std::string::npos;
  if (!hasColour && isOneByte) {
    EXPECT_EQ(bytes.str(), whole) << "byte by byte";
  }
  return whole;
}

TEST(VisibleStream, ControlCharactersBecomeVisible) {
  EXPECT_EQ(shown("plain é text\n\twith a tab\r\n"), "plain é text\n\twith a tab\r\n");
  EXPECT_EQ(shown("a\x1b[2Jb\x07\x7f"), "a\\u001b[2Jb\\u0007\\u007f");
  EXPECT_EQ(shown("over\rwritten"), "over\\u000dwritten");
  EXPECT_EQ(shown("\xc2\x9b"
                  "2J"),
            "\\u009b2J");
}

TEST(VisibleStream, OnlyTheCodesOfColoursPass) {
  EXPECT_EQ(shown("\x1b[1mbold\x1b[0m", true), "\x1b[1mbold\x1b[0m");
  EXPECT_EQ(shown("\x1b[1mbold\x1b[0m"), "\\u001b[1mbold\\u001b[0m");
  EXPECT_EQ(shown("\x1b[1A", true), "\\u001b[1A");
}

TEST(VisibleStream, NoLineIsACommandOfAService) {
  EXPECT_EQ(shown("::error::x\n \t::set-output::y"), ":\\u003aerror::x\n \t:\\u003aset-output::y");
  EXPECT_EQ(shown("\xc2\xa0::error::x"), "\xc2\xa0:\\u003aerror::x") << "a space that is no ASCII";
  EXPECT_EQ(shown("a::b\nstd::c"), "a::b\nstd::c");
  EXPECT_EQ(shown("x ##[group]y"), "x ##\\u005bgroup]y");
  EXPECT_EQ(Json::parse(shown(Json("##[x").dump())), "##[x") << "JSON keeps its meaning";
}

void expectHarmless(const ProgramResult& result, const std::string& call) {
  for (const std::string& text : {result.out, result.err}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << call << "\n" << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << call << "\n" << text;
    EXPECT_FALSE(std::regex_search(text, std::regex("(^|\n)[ \t]*::error file=x"))) << call << "\n" << text;
    EXPECT_FALSE(std::regex_search(text, std::regex("(^|\n)(?!::error file=(bad|good)[.])[^\n]*##\\["))) << call << "\n"
                                                                                                         << text;
  }
}

TEST(HostileTexts, OfRunsAreShownAndNotObeyed) {
  const TemporaryFolder folder;
  const std::string run =
      "run --device reference --iterations 2 --warmup 0 --quiet -o base.fuserun " + samplePipeline();
  ASSERT_EQ(fuseline(run, {}, folder.path()).exitCode, 0);
  Json record = Json::parse(readText(folder / "base.fuserun"));
  record["note"] = kHostile;
  record["stepNotes"] = Json::array({{{"step", kHostile}, {"phase", "forward"}, {"text", kHostile}}});
  for (Json& variant : record["variants"])
    for (Json& step : variant["steps"]) step["name"] = "=" + std::string(kHostile);
  for (Json& value : record["environment"])
    if (value.is_string()) value = kHostile;
  writeText(folder / "bad.fuserun", record.dump());
  for (const std::string& call :
       {std::string("compare base.fuserun bad.fuserun --fail-if 'step>+1%'"),
        std::string("compare bad.fuserun base.fuserun"),
        std::string("compare base.fuserun bad.fuserun --with bad.fuserun"), std::string("export bad.fuserun --to csv"),
        std::string("export bad.fuserun --to markdown"), std::string("export bad.fuserun --to folded")})
    expectHarmless(fuseline(call, {}, folder.path()), call);
  const std::string csv = fuseline("export bad.fuserun --to csv", {}, folder.path()).out;
  EXPECT_FALSE(std::regex_search(csv, std::regex("(^|,|\n)\"?[=@]"))) << csv;
}

TEST(HostileTexts, OfPipelinesAreShownAndNotObeyed) {
  const TemporaryFolder folder;
  Json pipeline = Json::parse(readText(goldenPath("sample.fuseline")));
  writeText(folder / "good.fuseline", pipeline.dump());
  pipeline["symbols"][kHostile] = kHostile;
  pipeline["pipeline"]["inputs"][0]["dtype"] = kHostile;
  pipeline["pipeline"]["ops"][0]["op"] = kHostile;
  pipeline["pipeline"]["ops"][1]["attributes"][kHostile] = kHostile;
  pipeline["pipeline"]["wires"][0][0] = kHostile;
  pipeline["pipeline"]["outputs"][0]["from"] = kHostile;
  writeText(folder / "bad.fuseline", pipeline.dump());
  writeText(folder / "plan.json", Json{{"forward", {{{"name", kHostile}, {"ops", {kHostile}}}}},
                                       {"backward", Json::array()},
                                       {"fusedQuantizations", Json::array()}}
                                      .dump());
  for (const std::string& call :
       {std::string("validate bad.fuseline"), std::string("validate --annotate github bad.fuseline"),
        std::string("validate --repair bad.fuseline -o mended.fuseline"), std::string("infer bad.fuseline"),
        std::string("explain bad.fuseline"), std::string("suggest bad.fuseline"),
        std::string("diff good.fuseline bad.fuseline"), std::string("diff bad.fuseline good.fuseline"),
        std::string("fuse bad.fuseline --annotate github --expect /dev/null"),
        std::string("fuse good.fuseline --device reference --annotate github --expect plan.json"),
        std::string("run bad.fuseline"), std::string("export bad.fuseline --to te")})
    expectHarmless(fuseline(call, {}, folder.path()), call);
  EXPECT_TRUE(
      has(fuseline("validate --annotate github bad.fuseline", {}, folder.path()).out, "::error file=bad.fuseline"))
      << "annotations of the program's own still are commands";
}

/// A message about a file quotes a part of it.
TEST(HostileTexts, AreCutBetweenCharacters) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "é";
  for (const char* pad : {"", "a"}) {
    writeText(folder / "bad.fuserun", Json{{"format", Json::array({pad + text})}}.dump());
    const std::string message = fuseline("compare bad.fuserun bad.fuserun", {}, folder.path()).err;
    EXPECT_NO_THROW((void)Json(message).dump()) << message;
  }
}

}  // namespace
}  // namespace fuseline::testing
