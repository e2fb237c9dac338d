// Lines that repeat are there once, and nothing of a list is lost.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/instance_lines.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

std::vector<std::string> foldedTexts(const std::string& keys) {
  std::vector<ListLine> lines;
  for (std::size_t i = 0; i < keys.size(); ++i)
    lines.push_back({.text = std::string(1, keys[i]), .key = std::string(1, keys[i]), .instance = std::to_string(i)});
  std::vector<std::string> texts;
  for (const ListLine& line : foldRepeats(std::move(lines))) texts.push_back(line.text);
  return texts;
}

TEST(FoldRepeats, LeavesListsWithoutThree) {
  EXPECT_EQ(foldedTexts("abab"), (std::vector<std::string>{"a", "b", "a", "b"}));
  EXPECT_EQ(foldedTexts(""), std::vector<std::string>{});
}

TEST(FoldRepeats, NamesTheFirstAndTheLast) {
  EXPECT_EQ(foldedTexts("xababababy"),
            (std::vector<std::string>{"x", "a\nb\n… the same 2 entries 3 more times, 3 to 8", "y"}));
  EXPECT_EQ(foldedTexts("aaaa"), std::vector<std::string>{"a\n… the same entry 3 more times, 1 to 3"});
}

TEST(FoldRepeats, FoldsWhatRepeatsInWhatRepeats) {
  const std::vector<std::string> texts = foldedTexts("aaabaaabaaab");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts.front(), "a\n… the same entry 2 more times, 1 to 2\nb\n… the same 2 entries 2 more times, 4 to 11");
}

}  // namespace
}  // namespace fuseline
