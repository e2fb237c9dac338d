// The table of a run's fields: what its texts mean, and that everything follows from it.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_spec.h"

#include "core/profile/run_command.h"
#include "core/support/field_table.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// A text for every field that is not its default.
const std::map<std::string_view, std::string> kTexts = {{"device", "cuda:1"},
                                                        {"pass", "forward"},
                                                        {"rules", "te"},
                                                        {"recipe", "DelayedScaling"},
                                                        {"timing", "cupti"},
                                                        {"emulates", "on"},
                                                        {"replays", "off"},
                                                        {"startsCold", "on"},
                                                        {"measuresPeaks", "on"},
                                                        {"warmup", "5"},
                                                        {"iterations", "20"},
                                                        {"seed", "7"},
                                                        {"symbols", "M=64"},
                                                        {"recipeFields", "margin=2"},
                                                        {"label", "my run"},
                                                        {"ranks", "2"},
                                                        {"deterministic", "on"},
                                                        {"overlaps", "off"},
                                                        {"chunks", "2"},
                                                        {"optimizer", "adamw"},
                                                        {"optimizerFields", "lr=0.1"}};

RunSpec otherSpec() {
  RunSpec spec;
  for (const SpecField& field : runSpecFields()) EXPECT_TRUE(takeText(field, kTexts.at(field.key), spec)) << field.key;
  return spec;
}

std::string refusal(std::string_view key, const std::string& text) {
  RunSpec spec;
  const Result<void> taken = takeText(runSpecField(key), text, spec);
  return taken ? "" : taken.error().message;
}

TEST(RunSpec, TakesEveryFieldFromTextAndSaysItAgain) {
  const RunSpec plain;
  const RunSpec spec = otherSpec();
  for (const SpecField& field : runSpecFields()) {
    EXPECT_NE(textsOf(field, spec), textsOf(field, plain)) << field.key;
    EXPECT_TRUE(field.isFlag() || textsOf(field, spec) == std::vector{kTexts.at(field.key)}) << field.key;
  }
}

TEST(RunSpec, HasFieldsInTheDialogWithAccessKeysOfTheirOwn) {
  EXPECT_FALSE(runSpecField("emulates").label.empty());
  std::set<char> keys;
  for (const SpecField& field : runSpecFields()) {
    if (field.label.empty()) continue;
    const std::size_t mark = field.label.find('&');
    ASSERT_LT(mark + 1, field.label.size()) << field.label;
    EXPECT_TRUE(keys.insert(field.label[mark + 1]).second) << field.label;
  }
}

TEST(RunSpec, ComesBackFromJson) {
  const RunSpec spec = otherSpec();
  const Json json = Json::parse(toJson(spec).dump());
  EXPECT_EQ(json.size(), runSpecFields().size());
  EXPECT_EQ(*fieldsOf(&spec).from(json), spec);
  EXPECT_EQ(*fieldsOf(&spec).from(Json::object()), RunSpec());
}

TEST(RunSpec, IsRepeatedByACommandWithAllItsOptions) {
  const std::string command = runCommand(otherSpec(), "mlp.fuseline");
  std::set<std::string_view> options;
  for (const SpecField& field : runSpecFields()) {
    EXPECT_TRUE(options.insert(field.option).second) << field.option;
    const bool isInIt = command.find(" " + optionName(field, RunSpec())) != std::string::npos;
    EXPECT_EQ(isInIt, field.group != SpecGroup::Peaks) << field.key;
  }
  EXPECT_NE(command.find("--no-replay"), std::string::npos);
  EXPECT_NE(command.find("--label 'my run'"), std::string::npos);
}

TEST(RunSpec, SaysWhatATextShouldBe) {
  EXPECT_EQ(refusal("pass", "sideways"), "expected one of forward, train, found sideways");
  EXPECT_EQ(refusal("timing", "sun"), "expected one of auto, events, cupti, host, none, found sun");
  EXPECT_EQ(refusal("warmup", "-1"), "expected a number from 0 to 1000000, found -1");
  EXPECT_EQ(refusal("warmup", "auto"), "expected a number from 0 to 1000000, found auto");
  EXPECT_EQ(refusal("iterations", "0"), "expected a number from 1 to 2147483647, or auto, found 0");
  EXPECT_EQ(refusal("iterations", "auto"), "");
  EXPECT_EQ(refusal("seed", "18446744073709551615"), "");
  EXPECT_EQ(refusal("seed", "18446744073709551616"),
            "expected an integer from 0 to 18446744073709551615, found 18446744073709551616");
  for (const char* text : {"M", "=4", "M=", "M=x", "M=1.5", ""})
    EXPECT_EQ(refusal("symbols", text), std::string("expected SYMBOL=INTEGER, as in M=1024, found ") + text);
  EXPECT_EQ(refusal("recipeFields", "margin"), "expected KEY=VALUE, found margin");
  EXPECT_EQ(refusal("recipeFields", "margin="), "");
  EXPECT_EQ(refusal("recipeFields", "=E4M3"), "expected KEY=VALUE, found =E4M3");
}

TEST(RunSpec, KeysMayHoldEqualsSigns) {
  RunSpec spec;
  for (const char* text : {"a=b.weight=mxfp8", "a=b.all=float8current(fp8_format=E4M3,use_power_2_scales=true)"})
    ASSERT_TRUE(takeText(runSpecField("recipeFields"), text, spec));
  EXPECT_EQ(spec.recipeFields, (NamedTextList{{"a=b.weight", "mxfp8"},
                                              {"a=b.all", "float8current(fp8_format=E4M3,use_power_2_scales=true)"}}));
}

}  // namespace
}  // namespace fuseline
