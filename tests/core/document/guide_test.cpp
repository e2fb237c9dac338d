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
  EXPECT_EQ(titles,
            (std::vector<std::string_view>{
                "First steps", "The designer", "Attention and transformer layers", "From a model's config",
                "Run and measure", "Train with AdamW", "Compare runs and sweep sizes", "How Fuseline measures",
                "Run on a GPU", "Benchmarks", "Low precision", "Numerics and tensors", "Export and import",
                "ONNX models", "Tensor parallelism on several ranks", "Placements on several ranks", "Problems"}));
}

/// Problems are looked up by their codes.
TEST(Guide, PagesFitOnTwoScreens) {
  std::uintmax_t pictureBytes = 0;
  for (const GuidePage& page : guidePages()) {
    const std::string text(page.text);
    EXPECT_TRUE(page.name == "problems" || std::ranges::count(text, '\n') <= 80) << page.name;
    static const std::regex picture(R"(!\[[^\]]+\]\((pictures/\w+\.png)\))");
    for (auto match = std::sregex_iterator(text.begin(), text.end(), picture); match != std::sregex_iterator(); ++match)
      pictureBytes += std::filesystem::file_size(std::filesystem::path(FUSELINE_SOURCE_DIR) / "resources/guide" /
                                                 (*match)[1].str());
  }
  EXPECT_GT(pictureBytes, 0U);
  EXPECT_LE(pictureBytes, 1'500'000U);
}

}  // namespace
}  // namespace fuseline::testing
