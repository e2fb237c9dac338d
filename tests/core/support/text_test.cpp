// Names that are near, and numbers as people read them.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/text.h"

#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(Nearest, SharesALetterAtLeast) {
  EXPECT_EQ(nearest("runn", {"bench", "run", "rules"}), "run");
  EXPECT_EQ(nearest("F", {"M", "H"}), "");
  EXPECT_EQ(nearest("f", {"M", "F"}), "F");
  EXPECT_EQ(nearest("fc", {"fc1", "act"}), "fc1");
  EXPECT_EQ(nearest("zz", {"fc1", "act"}), "");
}

TEST(Nearest, DiffersInAThirdOfTheLettersAtMost) {
  EXPECT_EQ(nearest("nrom", {"fc1", "norm"}), "norm") << "two letters that are exchanged are one error";
  EXPECT_EQ(nearest("nope", {"norm"}), "");
  EXPECT_EQ(nearest("mamba9", {"llama"}), "");
  EXPECT_EQ(nearest("MXFP8Scaling", {"MXFP8BlockScaling"}), "MXFP8BlockScaling");
}

TEST(FormatBytes, HasAUnitForEverySize) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(1020 * 1024), "1020 KiB") << "no exponent before the next unit";
  EXPECT_EQ(formatBytes(std::int64_t{3} << 50), "3 PiB");
  EXPECT_EQ(formatBytes(std::numeric_limits<std::int64_t>::max()), "8 EiB");
}

TEST(FormatDuration, KeepsThreeDigits) {
  EXPECT_EQ(formatDuration(1e9), "1.00 s");
  EXPECT_EQ(formatDuration(1.04e9), "1.04 s");
  EXPECT_EQ(formatDuration(32.1e6), "32.1 ms");
  EXPECT_EQ(formatDuration(99.96e3), "100 us");
  EXPECT_EQ(formatDuration(12), "12 ns") << "counted in whole ones";
  EXPECT_EQ(formatDuration(0), "0 ns");
}

TEST(Text, IsCutBetweenCharacters) {
  EXPECT_EQ(cutText("short", 5), "short");
  EXPECT_EQ(cutText("longer", 5), "longe...");
  EXPECT_EQ(cutText("abé", 3), "ab...") << "é takes two bytes";
  EXPECT_EQ(cutText("a€b", 3), "a...") << "€ takes three";
  EXPECT_EQ(cutText("\x80\x80", 1), "...") << "no text at all";
}

}  // namespace
}  // namespace fuseline
