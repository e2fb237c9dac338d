// The guide: every code of a problem that the sources report has a section.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/guide.h"
#include "tests/support/example_texts.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

namespace fuseline::testing {
namespace {

const std::vector<std::string>& explainedCodes() {
  static const std::vector<std::string> codes = problemCodes();
  return codes;
}

bool isDocumented(const std::string& code) { return std::ranges::count(explainedCodes(), code) == 1; }

/// The codes that a source file reports: the first text of a call of the sinks, or the field of a Diagnostic.
std::set<std::string> codesIn(const std::string& source) {
  static const std::regex report(
      R"re((?:error\(|fail\(|refuse\(index, |report\(Severity::\w+, |\.code = |code = |problem = \{|"missing-field" : )\s*"([a-z]+(?:-[a-z]+)*)")re");
  std::set<std::string> found;
  for (auto match = std::sregex_iterator(source.begin(), source.end(), report); match != std::sregex_iterator();
       ++match)
    found.insert((*match)[1].str());
  return found;
}

std::set<std::string> reportedCodes() {
  std::set<std::string> found;
  for (const char* folder : {"document", "lowering", "edit", "plan", "quant"})
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(FUSELINE_SOURCE_DIR) / "core" / folder))
      if (file.path().extension() == ".cpp") found.merge(codesIn(readFile(file.path())));
  return found;
}

TEST(Guide, ExplainsEveryCodeThatSourcesReport) {
  const std::set<std::string> reported = reportedCodes();
  EXPECT_GE(reported.size(), 35U);
  for (const std::string& code : reported) EXPECT_TRUE(isDocumented(code)) << code;
}

TEST(Guide, ExplainsEveryCodeThatBrokenFilesGive) {
  for (const auto& path : exampleFiles()) {
    const std::string text = readFile(path);
    for (std::size_t at = 0; at < text.size(); at += 7) {
      std::string broken = text;
      broken[at] = broken[at] == 'x' ? 'y' : 'x';
      for (const Diagnostic& problem : problems(broken)) EXPECT_TRUE(isDocumented(problem.code)) << problem.code;
    }
  }
}

TEST(Guide, GivesTheSectionOfACodeOnly) {
  const auto text = problemGuide("input-taken");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("Two wires lead to the same input.")) << *text;
  EXPECT_TRUE(text->ends_with("AddExtraInput.")) << *text;
  EXPECT_EQ(problemGuide("input"), std::nullopt);
  EXPECT_EQ(problemGuide(""), std::nullopt);
}

TEST(Guide, DescribesEveryCode) {
  for (const std::string& code : explainedCodes()) EXPECT_GE(problemGuide(code).value_or("").size(), 20U) << code;
}

TEST(Guide, PagesHaveTheirTitles) {
  std::vector<std::string_view> titles;
  for (const GuidePage& page : guidePages()) titles.push_back(page.title);
  EXPECT_EQ(titles, (std::vector<std::string_view>{"First steps", "The designer", "From a model's config",
                                                   "Run, measure and compare", "Run on a GPU", "How Fuseline measures",
                                                   "Tensor parallelism on several ranks", "Low precision and numerics",
                                                   "Export and import", "Problems"}));
}

}  // namespace
}  // namespace fuseline::testing
