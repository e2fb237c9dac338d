// The sizes of a sweep: the meaning of texts, and the order of the grid.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/shape_sweep.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using Sizes = std::vector<std::int64_t>;

Result<ShapeSweep> parsed(const std::vector<std::string>& texts) { return parseSweep(texts); }

Sizes sizesOf(const std::string& text) { return parsed({text})->axes.front().sizes; }

TEST(ShapeSweep, ReadsRangesAndLists) {
  EXPECT_EQ(sizesOf("M=128:1024:x2"), (Sizes{128, 256, 512, 1024}));
  EXPECT_EQ(sizesOf("M=128:1000:x2"), (Sizes{128, 256, 512})) << "the last size is a limit";
  EXPECT_EQ(sizesOf("M=100:350:+100"), (Sizes{100, 200, 300}));
  EXPECT_EQ(sizesOf("M=4096,512,1024"), (Sizes{4096, 512, 1024})) << "in the order given";
  EXPECT_EQ(sizesOf("M=7:7:x2"), (Sizes{7}));
  EXPECT_EQ(sizesOf("M=4611686018427387904:9223372036854775807:x2"), (Sizes{4611686018427387904})) << "no overflow";
}

TEST(ShapeSweep, WritesSizesAsTheyAreRead) {
  const auto text = [](const Sizes& sizes) { return sizesText(sizes); };
  EXPECT_EQ(text({128, 256, 512, 1024}), "128:1024:x2");
  EXPECT_EQ(text({3, 9, 27}), "3:27:x3");
  EXPECT_EQ(text({100, 200, 300}), "100:300:+100");
  EXPECT_EQ(text({100, 200, 400, 500}), "100,200,400,500");
  EXPECT_EQ(text({2, 5, 10}), "2,5,10") << "5 is not a multiple of 2";
  EXPECT_EQ(text({4096, 512, 64}), "4096,512,64");
  EXPECT_EQ(text({512, 1024}), "512,1024");
  EXPECT_EQ(text({7}), "7");
  EXPECT_TRUE(rc::check([] {
    const auto distinct = *rc::gen::unique<Sizes>(rc::gen::inRange<std::int64_t>(1, 40));
    RC_PRE(!distinct.empty());
    RC_ASSERT(*parseSizes(sizesText(distinct)) == distinct);
  }));
}

TEST(ShapeSweep, OffersSizesAroundOne) {
  EXPECT_EQ(sizesAround(1024), (Sizes{128, 256, 512, 1024, 2048}));
  EXPECT_EQ(sizesAround(12), (Sizes{3, 6, 12, 24}));
  EXPECT_EQ(sizesAround(7), (Sizes{7, 14}));
  EXPECT_EQ(sizesAround(1), (Sizes{1, 2}));
  EXPECT_EQ(sizesAround(9223372036854775807), (Sizes{9223372036854775807})) << "no overflow";
}

TEST(ShapeSweep, SaysWhatIsWrongWithSizesByThemselves) {
  EXPECT_EQ(parseSizes("1:2").error().message, "expected FIRST:LAST:STEP.");
  EXPECT_EQ(parseSizes("").error().message, "expected a positive whole number, found ''.");
}

TEST(ShapeSweep, WalksTheFirstAxisFastestAndRecipesSlowest) {
  const ShapeSweep sweep = *parsed({"M=1,2", "recipe=none,mxfp8", "H=16,32"});
  std::vector<std::string> names;
  for (const SweepPoint& point : sweep.points()) names.push_back(point.name());
  EXPECT_EQ(names, (std::vector<std::string>{"M=1 H=16 None", "M=2 H=16 None", "M=1 H=32 None", "M=2 H=32 None",
                                             "M=1 H=16 MXFP8BlockScaling", "M=2 H=16 MXFP8BlockScaling",
                                             "M=1 H=32 MXFP8BlockScaling", "M=2 H=32 MXFP8BlockScaling"}));
}

TEST(ShapeSweep, PutsAPointInPlaceOfWhatWasSet) {
  RunSpec settings{.recipe = "none", .symbols = {{"H", 1}, {"M", 1}}};
  parsed({"M=2"})->points().front().applyTo(settings);
  EXPECT_EQ(settings.symbols, (decltype(settings.symbols){{"H", 1}, {"M", 2}}));
  EXPECT_EQ(settings.recipe, "none") << "there is no axis of recipes";
}

TEST(ShapeSweep, HasAnAxisOfRanksThatIsNoSymbol) {
  const Result<ShapeSweep> sweep = parseSweep(std::vector<std::string>{"M=8,16", "ranks=1,4"});
  ASSERT_TRUE(sweep) << sweep.error().message;
  ASSERT_EQ(sweep->points().size(), 4u);
  RunSpec settings;
  sweep->points().back().applyTo(settings);
  EXPECT_EQ(settings.ranks, 4);
  EXPECT_EQ(settings.symbols, (NamedNumberList{{"M", 16}}));
  for (const char* text : {"ranks=2,65", "chunks=0", "chunks=auto"}) {
    const std::string message = parseSweep(std::vector<std::string>{text}).error().message;
    EXPECT_NE(message.find("expected numbers of "), std::string::npos) << message;
    EXPECT_NE(message.find(" from 1 to 64, such as "), std::string::npos) << message;
  }
}

TEST(ShapeSweep, RefusesWithWhatWasFound) {
  const auto refusal = [](const std::vector<std::string>& texts) {
    const Result<ShapeSweep> sweep = parsed(texts);
    return sweep ? "accepted" : sweep.error().message.substr(0, sweep.error().message.find(". "));
  };
  EXPECT_EQ(refusal({"M"}), "--over M: expected NAME=VALUES");
  EXPECT_EQ(refusal({"M=1:2"}), "--over M=1:2: expected FIRST:LAST:STEP");
  EXPECT_EQ(refusal({"M=1:8:2"}), "--over M=1:8:2: expected a step such as x2 or +128, found '2'");
  EXPECT_EQ(refusal({"M=1:8:x1"}), "--over M=1:8:x1: expected a step such as x2 or +128, found 'x1'");
  EXPECT_EQ(refusal({"M=8:1:x2"}), "--over M=8:1:x2: the last size must be at least the first one; found 8 and 1");
  EXPECT_EQ(refusal({"M=1,-2"}), "--over M=1,-2: expected a positive whole number, found '-2'");
  EXPECT_EQ(refusal({"M=1,2,1"}), "--over M=1,2,1: 1 is listed twice");
  EXPECT_EQ(refusal({"M=1", "M=2"}), "--over M=2: M is an axis already");
  EXPECT_EQ(refusal({"recipe=none"}).substr(0, 33), "--over: expected an axis of sizes");
  EXPECT_EQ(refusal({"M=1", "recipe=mxfp8,MXFP8"}), "--over recipe=mxfp8,MXFP8: MXFP8BlockScaling is listed twice");
  EXPECT_EQ(refusal({"M=1:100:+1", "H=1:100:+1"}), "--over: expected at most 1000 points, found more");
}

TEST(ShapeSweep, SizesGrowByTheStepUpToTheLimit) {
  EXPECT_TRUE(rc::check([] {
    const auto first = *rc::gen::inRange<std::int64_t>(1, 1000);
    const auto last = first + *rc::gen::inRange<std::int64_t>(0, 100000);
    const auto factor = *rc::gen::inRange<std::int64_t>(2, 9);
    const Sizes sizes =
        sizesOf("M=" + std::to_string(first) + ":" + std::to_string(last) + ":x" + std::to_string(factor));
    RC_ASSERT(sizes.front() == first);
    for (std::size_t i = 1; i < sizes.size(); ++i) RC_ASSERT(sizes[i] == factor * sizes[i - 1]);
    RC_ASSERT(sizes.back() <= last && sizes.back() * factor > last);
  }));
}

}  // namespace
}  // namespace fuseline
