// Exit codes, messages and files of the verbs.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/tensor/safetensors.h"
#include "tests/app/cli/json_schema.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// Words with one space between them: a sentence may be broken anywhere.
std::string inOneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

void expectNarrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }), 120)
        << line;
}

/// A column of shares, not of tolerances.
TEST(Recipes, AreComparedByWhatUnderflows) {
  const std::string text =
      fuseline("run --device reference --iterations 1 --warmup 0 --recipe none,mxfp8 " + samplePipeline()).out;
  EXPECT_TRUE(has(text, "underflow")) << text;
  EXPECT_FALSE(has(text, "of its tolerance")) << text;
}

// "fuseline sweep mlp.fuseline --over M=64": the options of an example are those of its verb.
TEST(Recipes, AreComparedWithoutAWordWhereItShallBeQuiet) {
  const ProgramResult result =
      fuseline("run --device reference --iterations 1 --warmup 0 --recipe all --quiet " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(result.out, "");
  for (const char* option : {"--measured no.fuserun", "--note 'a word'"})
    EXPECT_EQ(fuseline(fmt::format("run --recipe all {} {}", option, samplePipeline())).exitCode, 2) << option;
}

TEST(Sweep, ReplacesNoRecordUnasked) {
  const TemporaryFolder folder;
  const std::string call = "sweep --device reference --iterations 1 --over M=8,16 --records " +
                           quoted(folder / "runs") + " " + samplePipeline();
  ASSERT_EQ(fuseline(call).exitCode, 0);
  const ProgramResult again = fuseline(call);
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(has(again.err, "--force overwrites it")) << again.err;
  EXPECT_EQ(fuseline(call + " --force").exitCode, 0);
}

/// A file with this number of equal layers, none of which fits MXFP8.
std::string layersFile(const std::filesystem::path& path, int count) {
  Json file = {{"format", "fuseline-pipeline"}, {"formatVersion", {{"major", 1}, {"minor", 1}}}};
  Json& block = file["blocks"]["Layer"];
  block["inputs"] = {{{"id", "x"}}};
  block["ops"] = {
      {{"id", "norm"}, {"op", "RMSNorm"}, {"attributes", {{"normalized_shape", {48}}}}},
      {{"id", "fc"}, {"op", "Linear"}, {"attributes", {{"in_features", 48}, {"out_features", 48}, {"bias", false}}}}};
  for (const auto& [from, to] : {std::pair("x", "norm.x"), {"norm.y", "fc.x"}})
    block["wires"].push_back(Json::array({from, to}));
  block["outputs"] = {{{"id", "y"}, {"from", "fc.y"}}};
  Json& pipeline = file["pipeline"];
  pipeline["inputs"] = {{{"id", "x"}, {"dtype", "bf16"}, {"shape", {16, 48}}}};
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const std::string id = "layer" + std::to_string(i);
    pipeline["ops"].push_back({{"id", id}, {"op", "block:Layer"}});
    pipeline["wires"].push_back(Json::array({last, id + ".x"}));
    last = id + ".y";
  }
  pipeline["outputs"] = {{{"id", "y"}, {"from", last}}};
  writeText(path, file.dump());
  return quoted(path);
}

TEST(Instances, AreSpokenOfOnce) {
  const TemporaryFolder folder;
  const std::string few = layersFile(folder / "few.fuseline", 8);
  const std::string many = layersFile(folder / "many.fuseline", 80);
  const auto numLines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  for (const char* verb : {"fuse --device reference --recipe mxfp8 ", "explain --device reference --recipe mxfp8 "}) {
    const ProgramResult ofFew = fuseline(verb + few);
    const ProgramResult ofMany = fuseline(verb + many);
    EXPECT_EQ(ofMany.exitCode, 0) << ofMany.err;
    EXPECT_EQ(numLines(ofMany.err), 1) << ofMany.err;
    EXPECT_TRUE(has(ofMany.err, "The same holds in 79 more instances of block Layer.")) << ofMany.err;
    // Numbers with one digit more may break a line.
    EXPECT_LE(numLines(ofMany.out), numLines(ofFew.out) + 8) << verb;
  }
  const Json plan = fuseline("fuse --device reference --json " + many).json();
  std::size_t numPlaces = 0;
  for (const Json& attempt : plan["attempts"]) numPlaces += attempt["instances"].size();
  EXPECT_EQ(numPlaces, plan["attempts"].size());
}

TEST(ForeignFiles, AreNamed) {
  const TemporaryFolder folder;
  writeText(folder / "config.json", R"({"model_type": "llama", "hidden_size": 64})");
  writeText(folder / "weights.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  for (const char* verb : {"import ", "fuse --device reference ", "validate "}) {
    const ProgramResult config = fuseline(verb + quoted(folder / "config.json"));
    EXPECT_EQ(config.exitCode, 1);
    EXPECT_TRUE(has(config.err, "intermediate_size is missing")) << config.err;
    const ProgramResult weights = fuseline(verb + quoted(folder / "weights.safetensors"));
    EXPECT_TRUE(has(weights.err, "a safetensors file") && has(weights.err, "--tensors")) << weights.err;
  }
  const ProgramResult run =
      fuseline("compare " + quoted(folder / "config.json") + " " + quoted(folder / "config.json"));
  EXPECT_TRUE(has(run.err, "the configuration of a Hugging Face model")) << run.err;
}

/// Otherwise only the output that is written second would be left.
TEST(OutputFiles, OfOneCallDiffer) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "out");
  for (const std::string& call :
       {"run --device reference --iterations 1 -o " + file + " --dump " + file + " " + samplePipeline(),
        "run --device reference --iterations 1 --dump " + file + " --save " + file + " " + samplePipeline(),
        "run --device reference --iterations 1 --dump " + samplePipeline() + " " + samplePipeline()}) {
    const ProgramResult result = fuseline(call);
    EXPECT_EQ(result.exitCode, 2) << call;
    EXPECT_TRUE(has(result.err, "expected two files")) << result.err;
  }
}

/// An empty variable of a shell script makes no success.
TEST(Arguments, AreMissedWhereTheirOptionsAreGiven) {
  EXPECT_EQ(fuseline("export --to te").exitCode, 2);
  EXPECT_EQ(fuseline("new -o out.fuseline").exitCode, 2);
  EXPECT_EQ(fuseline("export").exitCode, 0);
  EXPECT_EQ(fuseline("new").exitCode, 0);
}

TEST(Arguments, StandBehindOptionsThatCanBeRepeated) {
  const ProgramResult run =
      fuseline("run --device reference --iterations 1 --variants fused " + samplePipeline() + " --quiet");
  EXPECT_EQ(run.exitCode, 0) << run.err;
  const ProgramResult twice = fuseline("run --device reference --variants fused,fused " + samplePipeline());
  EXPECT_EQ(twice.exitCode, 2);
  EXPECT_TRUE(has(twice.err, "fused is named twice")) << twice.err;
  const ProgramResult compared = fuseline("compare --fail-if 'median>+5%' a.fuserun b.fuserun --json");
  EXPECT_FALSE(has(compared.err, "NEW is required")) << compared.err;
}

TEST(Annotations, DoNotStandInWhatProgramsRead) {
  EXPECT_EQ(fuseline("fuse --format json --annotate github " + samplePipeline()).exitCode, 2);
}

std::vector<std::string> verbNames() {
  std::istringstream lines(fuseline("--help").out);
  std::vector<std::string> names;
  bool isList = false;
  for (std::string line; std::getline(lines, line); isList = isList || line == "Subcommands:")
    if (isList && line.starts_with("  ") && !line.starts_with("   "))
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  return names;
}

TEST(Help, OpensWithOneSentenceAndTwoExamples) {
  ASSERT_GE(verbNames().size(), 20u);
  for (const std::string& verb : verbNames()) {
    const std::string help = fuseline(verb + " --help").out;
    const std::string sentence = help.substr(0, help.find('\n'));
    EXPECT_TRUE(sentence.ends_with('.') && sentence.find(". ") == std::string::npos) << verb << ": " << sentence;
    EXPECT_LE(sentence.size(), 140u) << verb << ": " << sentence;
    const std::string opening = sentence + "\n\nExamples:\n  fuseline " + verb;
    EXPECT_TRUE(help.starts_with(opening)) << verb << ": " << help.substr(0, opening.size());
    const std::size_t usage = help.find("Usage: ");
    ASSERT_NE(usage, std::string::npos) << verb;
    const std::string options = help.substr(usage);
    std::istringstream lines(help.substr(0, usage));
    int numExamples = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  fuseline " + verb)) continue;
      ++numExamples;
      std::istringstream words(line);
      for (std::string word; words >> word;)
        if (word.starts_with("-")) {
          EXPECT_TRUE(has(options, word)) << verb << ": " << word;
        }
    }
    EXPECT_GE(numExamples, 2) << verb;
  }
}

TEST(Output, FitsTheTerminal) {
  const std::string sample = samplePipeline();
  for (const char* verb : {"explain ", "fuse ", "infer "})
    for (const std::string columns : {"80", "100"}) {
      setenv("COLUMNS", columns.c_str(), 1);
      std::istringstream lines(fuseline(verb + sample).out);
      unsetenv("COLUMNS");
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }),
                  std::stoi(columns))
            << line;
    }
}

TEST(Output, SaysWhereItCannotBeWritten) {
  EXPECT_EQ(fuseline("ops >/dev/full; echo $?").out, "4\n");
  EXPECT_EQ(fuseline("ops RMSNrom >/dev/full; echo $?").out, "2\n") << "what was wrong before is what is told";
}

TEST(Run, ReplacesNoRecordUnasked) {
  const TemporaryFolder folder;
  const std::string run =
      "run --device reference --iterations 1 --set M=16 " + samplePipeline() + " -o " + quoted(folder / "a.fuserun");
  EXPECT_EQ(fuseline(run).exitCode, 0);
  const ProgramResult again = fuseline(run);
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
  EXPECT_EQ(fuseline(run + " --force").exitCode, 0);
}

TEST(Suggest, TriesEditsWithTheSizesThatAreSet) {
  const std::string pipeline =
      quoted(std::filesystem::path(FUSELINE_SOURCE_DIR) / "resources/examples/gpt_mlp.fuseline");
  const ProgramResult result = fuseline("suggest --device sm_100 --recipe mxfp8 --set M=100 " + pipeline);
  EXPECT_TRUE(has(inOneLine(result.out), "M to 128")) << result.out;
}

TEST(Validate, WritesNothingWhereNothingWasRepaired) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.fuseline") << R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {"inputs": [], "ops": [{"id": "a", "op": "GELU", "attributes": {}}], "wires": [], "outputs": [{"id": "y", "from": "a.y"}]}})";
  const ProgramResult result =
      fuseline("validate --repair " + quoted(folder / "a.fuseline") + " -o " + quoted(folder / "b.fuseline"));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "nothing was written")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "b.fuseline"));
}

TEST(ExitCode, IsZeroForAValidPipeline) {
  const ProgramResult result = fuseline("validate " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.err, "0 errors"));
}

TEST(ExitCode, IsOneForInvalidInput) {
  const std::string broken = quoted(goldenPath("broken.fuseline"));
  for (const char* verb :
       {"validate", "infer", "fuse --device reference", "explain --device reference", "run --device reference"})
    EXPECT_EQ(fuseline(std::string(verb) + " " + broken).exitCode, 1) << verb;
}

TEST(Validate, RepairsWhatItCanAndSaysWhatItDid) {
  const TemporaryFolder folder;
  const std::string mended = quoted(folder / "mended.fuseline");
  const std::string broken = quoted(goldenPath("broken.fuseline"));
  const ProgramResult result = fuseline("validate --repair -o " + mended + " " + broken);
  EXPECT_EQ(result.exitCode, 1) << "out_features stays unknown";
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.err, "repaired: Change it to RMSNorm")) << result.err;
  EXPECT_TRUE(has(result.err, "there is no symbol K")) << result.err;
  EXPECT_TRUE(has(fuseline("validate " + mended).err, "2 errors, 1 warning"));
  EXPECT_EQ(fuseline("validate --repair -o " + mended + " " + broken).exitCode, 2) << "it exists";
  EXPECT_EQ(fuseline("validate --repair --force -o " + mended + " " + mended).exitCode, 1);
  EXPECT_EQ(fuseline("validate -o other.fuseline " + broken).exitCode, 2) << "nothing is repaired unasked";
  EXPECT_EQ(fuseline("validate --repair --annotate github " + broken).exitCode, 2);
}

TEST(Suggest, ListsWhatHelpsAndAppliesOne) {
  const TemporaryFolder folder;
  const std::string changed = quoted(folder / "changed.fuseline");
  const std::string suggest = "suggest --device reference --rules te " + samplePipeline();
  const ProgramResult listed = fuseline(suggest);
  EXPECT_EQ(listed.exitCode, 0) << listed.err;
  EXPECT_TRUE(has(listed.out, "Set add.in_place to true")) << listed.out;
  EXPECT_TRUE(has(listed.out, "1 step fewer")) << listed.out;
  EXPECT_TRUE(has(listed.out, "forward + ForwardLinearBiasAdd (fc2, add)")) << listed.out;
  EXPECT_TRUE(has(listed.err, "predicted")) << "an estimate is labelled as one";
  const ProgramResult applied = fuseline(suggest + " --apply 1 -o " + changed);
  EXPECT_EQ(applied.exitCode, 0) << applied.err;
  const Json again = fuseline("fuse --json --device reference --rules te " + changed).json();
  EXPECT_EQ(again["forward"].back()["name"], "ForwardLinearBiasAdd") << again["forward"];
  EXPECT_EQ(fuseline(suggest + " --apply 1 -o " + changed).exitCode, 2) << "it exists";
  EXPECT_EQ(fuseline(suggest + " --apply 99").exitCode, 2);
  EXPECT_EQ(fuseline(suggest + " -o other.fuseline").exitCode, 2) << "which one?";
  EXPECT_EQ(fuseline("suggest --device reference " + changed).out,
            "No suggestions: no edit that was tried saves time, traffic or memory.\n");
}

TEST(Validate, RepairsNoFileThatCouldNotBeReadAsAWhole) {
  const TemporaryFolder folder;
  const std::filesystem::path cut = folder / "cut.fuseline";
  std::ofstream(cut) << R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1)";
  const ProgramResult result = fuseline("validate --repair " + quoted(cut));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.err, "cannot be repaired: the parts that could not be read would be lost.")) << result.err;
}

TEST(ExitCode, IsOneForAFileThatIsNotThere) {
  const ProgramResult result = fuseline("validate /no/such/file.fuseline");
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "/no/such/file.fuseline")) << result.err;
}

TEST(Validate, GoesOnBehindAFileThatIsNotThere) {
  const std::string files = "/no/such/file.fuseline " + samplePipeline();
  const ProgramResult result = fuseline("validate " + files);
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.out, "/no/such/file.fuseline") && has(result.out, "[not-opened")) << result.out;
  EXPECT_TRUE(has(result.err, "0 errors")) << result.err;
  const Json found = fuseline("validate --json " + files).json();
  EXPECT_EQ(found["isValid"], false);
  ASSERT_EQ(found["files"].size(), 2u);
  EXPECT_EQ(found["files"][0]["isValid"], false);
  EXPECT_EQ(found["files"][1]["isValid"], true);
}

TEST(ExitCode, IsTwoForUsage) {
  for (const std::string& arguments :
       {std::string(""),
        std::string("dance"),
        std::string("run"),
        "run --no-such-option " + samplePipeline(),
        "fuse --format xml " + samplePipeline(),
        "run --iterations many " + samplePipeline(),
        "run --variants sideways " + samplePipeline(),
        "fuse --device reference --recipe FP9 " + samplePipeline(),
        "fuse --device reference --recipe mxfp8 --recipe-set margin=1 " + samplePipeline(),
        "fuse --device reference --recipe delayed --recipe-set margin=x " + samplePipeline(),
        "fuse --device reference --recipe-set a=1 " + samplePipeline(),
        "fuse --device reference --optimizer sgd " + samplePipeline(),
        "fuse --device reference --optimizer-set lr=1 " + samplePipeline(),
        "fuse --device reference --optimizer adamw --optimizer-set lr=-1 " + samplePipeline(),
        "run --device reference --optimizer adamw --pass forward " + samplePipeline(),
        "fuse --device reference --optimizer adamw --optimizer-set schedule=cosine " + samplePipeline(),
        "export --to svg --optimizer adamw " + samplePipeline(),
        "fuse --device reference --stage nowhere " + samplePipeline(),
        "fuse --device reference --stage plan --json " + samplePipeline(),
        "fuse --device reference --without ForwardLinearEpilogue@nowhere " + samplePipeline(),
        "run --device reference --with ForwardLinearEpilogue@nowhere " + samplePipeline(),
        "fuse --device reference --bandwidth -1 " + samplePipeline(),
        "fuse --device reference --bandwidth nan " + samplePipeline(),
        "infer --set M " + samplePipeline(),
        "infer --set NOPE=3 " + samplePipeline(),
        "run --timing cupti --device reference " + samplePipeline(),
        std::string("ops NoSuchOp"),
        std::string("rules NoSuchRule"),
        std::string("new no_such_template"),
        std::string("schema --of dance"),
        "explain --device reference " + samplePipeline() + " nope"})
    EXPECT_EQ(fuseline(arguments).exitCode, 2) << arguments;
}

TEST(ExitCode, OfBenchmarksIsTwoForUsage) {
  for (const char* arguments :
       {"cpu --only llama", "scaling --device cuda", "ops --records folder", "tpu", "ops --only Nope", "cpu --cold",
        "gpu --only nope", "ops --only Linear", "ops --quick --device reference"})
    EXPECT_EQ(fuselineBench(arguments).exitCode, 2) << arguments;
}

TEST(ExitCode, IsThreeForADeviceThatCannotRun) {
  const ProgramResult architecture = fuseline("run --device sm_90 " + samplePipeline());
  EXPECT_EQ(architecture.exitCode, 3);
  EXPECT_TRUE(has(architecture.err, "architecture to plan for")) << architecture.err;
  EXPECT_EQ(fuseline("run --device cuda:99 " + samplePipeline()).exitCode, 3);
  EXPECT_EQ(fuseline("run --device toaster " + samplePipeline()).exitCode, 3);
}

TEST(Messages, NameAFileThatCannotBeWritten) {
  const ProgramResult result =
      fuseline("run --device reference --iterations 1 -o /no/such/folder/run.json " + samplePipeline());
  EXPECT_NE(result.exitCode, 0);
  EXPECT_TRUE(has(result.err, "/no/such/folder")) << result.err;
}

TEST(ExitCode, IsFourForAPipelineLargerThanTheMemory) {
  const ProgramResult result = fuseline("run --device reference --set M=16000000 --set H=1000000 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 4);
  EXPECT_TRUE(has(result.err, "Make the pipeline smaller with --set")) << result.err;
}

TEST(Run, TimesWholeRunsOnlyWhereNothingShallTimeSteps) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "plain.fuserun");
  const std::string run = "run --device reference --iterations 2 --warmup 0 " + samplePipeline();
  const ProgramResult plain = fuseline(run + " --timing none -o " + file);
  EXPECT_EQ(plain.exitCode, 0) << plain.err;
  EXPECT_TRUE(has(plain.out, "end to end")) << plain.out;
  EXPECT_FALSE(has(plain.out, "with clocks inside")) << plain.out;
  EXPECT_TRUE(has(fuseline(run + " --timing host").out, "with clocks inside"));
  const ProgramResult explained = fuseline("explain --device reference " + samplePipeline() + " --measured " + file);
  EXPECT_TRUE(has(explained.err, "Run without --timing none")) << explained.err;
}

TEST(Run, KeepsItsLabelForReports) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "a.fuserun");
  const ProgramResult run = fuseline("run --device reference --iterations 1 --json --label 'fp8, rebased' -o " + file +
                                     " " + samplePipeline());
  EXPECT_EQ(run.json()["record"]["settings"]["label"], "fp8, rebased");
  for (const char* format : {"html", "markdown"})
    EXPECT_TRUE(has(fuseline(std::string("export --to ") + format + " " + file).out, "fp8, rebased")) << format;
}

TEST(Run, SaysThatCachesWereColdAndWhatCameBeforeTheRounds) {
  const TemporaryFolder folder;
  const std::string cold = quoted(folder / "cold.fuserun");
  const std::string warm = quoted(folder / "warm.fuserun");
  const std::string run = "run --device cpu --iterations 2 --no-peaks " + samplePipeline();
  const ProgramResult coldly = fuseline(run + " --cold -o " + cold);
  EXPECT_EQ(coldly.exitCode, 0) << coldly.err;
  EXPECT_TRUE(has(coldly.out, "caches were filled with other data before every run")) << coldly.out;
  EXPECT_TRUE(has(coldly.out, "Setup took ")) << coldly.out;
  EXPECT_FALSE(has(fuseline(run + " -o " + warm).out, "caches were filled"));
  const ProgramResult compared = fuseline("compare " + warm + " " + cold);
  EXPECT_TRUE(has(compared.out + compared.err, "caches")) << compared.out << compared.err;
  const ProgramResult reference = fuseline("run --device reference --cold " + samplePipeline());
  EXPECT_EQ(reference.exitCode, 2);
  EXPECT_TRUE(has(reference.err, "cold-cache measurement is not available")) << reference.err;
}

TEST(Messages, OfAWrongRecipeNameTheOnesThatExist) {
  EXPECT_TRUE(has(fuseline("fuse --device reference --recipe FP9 " + samplePipeline()).err,
                  "there is no recipe 'FP9'; `fuseline recipes` lists them."));
}

TEST(Messages, SayWhichArchitectureARecipeNeeds) {
  const ProgramResult result = fuseline("fuse --device sm_90 --recipe mxfp8 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 3);
  EXPECT_TRUE(has(result.err, "MXFP8BlockScaling needs compute capability 10.0 (sm_100) or newer")) << result.err;
  for (const char* device : {"sm_100", "sm_103", "sm_110", "sm_120", "sm_90 --emulate", "sm_80 --emulate"})
    EXPECT_EQ(fuseline(fmt::format("fuse --device {} --recipe mxfp8 {}", device, samplePipeline())).exitCode, 0);
  const ProgramResult ampere = fuseline("fuse --device sm_86 --recipe delayed " + samplePipeline());
  EXPECT_EQ(ampere.exitCode, 3);
  EXPECT_TRUE(has(ampere.err, "this device has 8.6 (sm_86). Valid values: None.")) << ampere.err;
}

TEST(Planning, AnAbsentGpuFollowsTheRulesOfTheFile) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "chain.fuseline";
  const std::string text = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
      "inputs": [{"id": "x", "dtype": "bf16", "shape": [64, 64]}],
      "ops": [{"id": "fc", "op": "Linear", "attributes": {"in_features": 64, "out_features": 64, "bias": true}},
              {"id": "act", "op": "GELU"}],
      "wires": [["x", "fc.x"], ["fc.y", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]})";
  writeText(file, text + "}");
  const std::string fuse = "fuse --device sm_90 " + quoted(file);
  const std::string te = fuseline(fuse + " --rules te").out;
  const std::string all = fuseline(fuse).out;
  writeText(file, text + R"(, "fusion": {"rules": "te"}})");
  EXPECT_TRUE(has(te, "fc")) << te;
  EXPECT_EQ(fuseline(fuse).out, te);
  EXPECT_EQ(fuseline(fuse + " --rules all").out, all);
}

TEST(Planning, AnAbsentGpuHasFusionsThatNothingHereRuns) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "mlp.fuseline");
  ASSERT_EQ(fuseline("new grouped-mlp -o " + file).exitCode, 0);
  const std::string fuse = "fuse --recipe mxfp8 " + file + " --device ";
  const ProgramResult planned = fuseline(fuse + "sm_100");
  EXPECT_TRUE(has(planned.out, "[fc1 + act + fc2]  GroupedMLP_CuTeGEMMGLU (joint, te)")) << planned.out;
  const ProgramResult here = fuseline(fuse + "cpu");
  EXPECT_TRUE(has(inOneLine(here.out), "no kernel on this device: GroupedMLP_CuTeGEMMGLU needs a GPU")) << here.out;
}

TEST(Planning, AbsentRanksArePlannedFor) {
  const std::string nested = quoted(goldenPath("nested.fuseline"));
  EXPECT_TRUE(has(fuseline("fuse --device sm_90 " + nested).out, "The group has 1 rank"));
  const ProgramResult planned = fuseline("explain --device sm_90 --ranks 2 " + nested);
  EXPECT_FALSE(has(planned.out, "The group has 1 rank")) << planned.out;
  EXPECT_TRUE(has(planned.out, "there is no communication to overlap")) << planned.out;
  EXPECT_EQ(fuseline("fuse --ranks 0 " + nested).exitCode, 2);
  EXPECT_EQ(fuseline("run --ranks 0 " + nested).exitCode, 2);
}

/// A linear with matrices that fit every scaling.
std::string quantizablePipeline(const TemporaryFolder& folder, const std::string& recipe = "null") {
  const std::filesystem::path path = folder / "linear.fuseline";
  writeText(path, R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [128, 256]}],
      "ops": [{"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [256]}},
              {"id": "fc", "op": "Linear", "attributes": {"in_features": 256, "out_features": 128}}],
      "wires": [["x", "norm.x"], ["norm.y", "fc.x"]], "outputs": [{"id": "y", "from": "fc.y"}]},
    "recipe": )" + recipe +
                      "}");
  return quoted(path);
}

TEST(Recipe, OfTheFileIsUsedUnlessAnotherIsNamed) {
  const TemporaryFolder folder;
  const std::string file = quantizablePipeline(folder, R"({"name": "DelayedScaling", "margin": 2})");
  const auto recipeOf = [&](const std::string& options) {
    return fuseline("run --device reference --iterations 1 --warmup 0 --json " + options + " " + file)
        .json()["record"]["settings"]["recipe"];
  };
  EXPECT_EQ(recipeOf(""), "DelayedScaling");
  EXPECT_EQ(recipeOf("--recipe nvfp4"), "NVFP4BlockScaling");
  EXPECT_EQ(recipeOf("--recipe none"), "None");
}

TEST(Recipe, OfTheFileIsCheckedWithItsPlace) {
  const TemporaryFolder folder;
  const ProgramResult result = fuseline("validate " + quantizablePipeline(folder, R"({"name": "FP9"})"));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.out + result.err, "there is no recipe 'FP9'")) << result.out;
  EXPECT_TRUE(has(result.out + result.err, "/recipe")) << result.out;
}

TEST(Recipe, ShowsItsStepsInThePlan) {
  const TemporaryFolder folder;
  const std::string plan =
      fuseline("fuse --device reference --stage plan --recipe delayed " + quantizablePipeline(folder)).out;
  for (const char* step : {"(quantizes fc.linear.input)", "fc.linear.quantize_weight",
                           "(quantizes fc.linear.grad_output)", "delayed_scaling_update"})
    EXPECT_TRUE(has(plan, step)) << step << "\n" << plan;
}

TEST(Recipe, SavesAndTakesUpItsState) {
  const TemporaryFolder folder;
  const std::string file = quantizablePipeline(folder);
  const std::string state = quoted(folder / "state.safetensors");
  const std::string run = "run --device reference --iterations 1 --warmup 0 --quiet --recipe delayed ";
  ASSERT_EQ(fuseline(run + "--save " + state + " " + file).exitCode, 0);
  const auto saved = readSafetensors(folder / "state.safetensors");
  ASSERT_TRUE(saved.hasValue());
  const Tensor* const scale = findTensor(*saved, "DelayedScaling-HYBRID/fc.linear/forward/input.scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_NE(scale->toDoubles().front(), 1.0);
  EXPECT_EQ(fuseline(run + "--tensors " + state + " " + file).exitCode, 0);
  // With another recipe the state is not used, and no error.
  EXPECT_EQ(fuseline("run --device reference --iterations 1 --warmup 0 --quiet --recipe mxfp8 --tensors " + state +
                     " " + file)
                .exitCode,
            0);
}

TEST(Recipe, DumpsItsCopies) {
  const TemporaryFolder folder;
  const std::string dump = quoted(folder / "dump.safetensors");
  ASSERT_EQ(fuseline("run --device reference --iterations 1 --warmup 0 --quiet --variants unfused --recipe nvfp4 "
                     "--dump " +
                     dump + " " + quantizablePipeline(folder))
                .exitCode,
            0);
  const auto tensors = readSafetensors(folder / "dump.safetensors");
  ASSERT_TRUE(tensors.hasValue());
  for (const char* name : {"fc.linear.input@data", "fc.linear.input@scale_inv", "fc.linear.input@dequantized",
                           "fc.linear.input@columnwise_data", "fc.linear.weight@amax"})
    EXPECT_NE(findTensor(*tensors, name), nullptr) << name;
}

TEST(Numerics, AreReportedForEveryTensor) {
  const TemporaryFolder folder;
  const Json numerics = fuseline(
                            "run --device reference --iterations 1 --warmup 0 --numerics --json --recipe "
                            "Float8Current " +
                            quantizablePipeline(folder))
                            .json()["numerics"];
  EXPECT_EQ(numerics["recipe"], "Float8CurrentScaling");
  EXPECT_EQ(numerics["quantizedTensors"].size(), 6U);
  EXPECT_TRUE(numerics["firstNonFinite"].is_null());
  for (const Json& copy : numerics["quantizedTensors"]) EXPECT_GT(copy["meanSquaredError"].get<double>(), 0.0) << copy;
  for (const Json& error : numerics["errors"]) EXPECT_GT(error["cosine"].get<double>(), 0.99) << error;
}

TEST(Numerics, CompareAllRecipes) {
  const TemporaryFolder folder;
  const Json recipes =
      fuseline("run --device reference --iterations 1 --warmup 0 --json --recipe all " + quantizablePipeline(folder))
          .json()["recipes"];
  ASSERT_EQ(recipes.size(), 6U);
  for (const Json& recipe : recipes) {
    EXPECT_TRUE(recipe["fits"]) << recipe["reason"];
    EXPECT_FALSE(recipe["numerics"].is_null()) << recipe["recipe"];
  }
  const Json sample =
      fuseline("run --device reference --iterations 1 --warmup 0 --json --recipe all " + samplePipeline()).json();
  EXPECT_TRUE(sample["recipes"][0]["fits"]);
  EXPECT_FALSE(sample["recipes"][3]["fits"]);
  EXPECT_TRUE(has(sample["recipes"][3]["reason"].get<std::string>(), "needs multiples of")) << sample["recipes"][3];
}

TEST(Numerics, OfSeveralRecipesCanBeDenied) {
  const TemporaryFolder folder;
  const std::string run = "run --device reference --iterations 1 --warmup 0 --json --recipe none,mxfp8 --no-numerics ";
  const Json recipes = fuseline(run + quantizablePipeline(folder)).json()["recipes"];
  EXPECT_EQ(recipes.size(), 2U);
  for (const Json& recipe : recipes) EXPECT_TRUE(recipe["numerics"].is_null()) << recipe["recipe"];
}

TEST(Recipe, ComparisonsAreNotWrittenToTheFilesOfOneRun) {
  const TemporaryFolder folder;
  for (const char* option : {"-o", "--dump", "--save"}) {
    const ProgramResult result = fuseline(std::string("run --device reference --iterations 1 --recipe none,mxfp8 ") +
                                          option + " " + quoted(folder / "a") + " " + quantizablePipeline(folder));
    EXPECT_EQ(result.exitCode, 2) << option;
    EXPECT_TRUE(has(result.err, std::string(option) + " ")) << result.err;
  }
}

TEST(Run, MeasuresNothingThatCannotBeWritten) {
  for (const char* option : {"-o", "--dump", "--save"}) {
    const ProgramResult result = fuseline(std::string("run --device reference --iterations 1 ") + option +
                                          " /no/such/folder/a.safetensors " + samplePipeline());
    EXPECT_EQ(result.exitCode, 4) << option;
    EXPECT_TRUE(has(result.err, "/no/such/folder/a.safetensors: cannot be written")) << result.err;
    EXPECT_EQ(result.out, "") << "there is no table of a run that was not";
  }
}

TEST(Numerics, CompareTheNamedRecipes) {
  const TemporaryFolder folder;
  const std::string run = "run --device reference --iterations 1 --warmup 0 --json --recipe ";
  const Json recipes = fuseline(run + "mxfp8,none " + quantizablePipeline(folder)).json()["recipes"];
  ASSERT_EQ(recipes.size(), 2U);
  EXPECT_EQ(recipes[0]["recipe"], "MXFP8BlockScaling");
  EXPECT_TRUE(recipes[0]["timeRatio"].is_null());
  EXPECT_EQ(recipes[1]["recipe"], "None");
  EXPECT_GT(recipes[1]["timeRatio"].get<double>(), 0.0);
  const ProgramResult misspelt = fuseline(run + "none,mxpf8 " + quantizablePipeline(folder));
  EXPECT_EQ(misspelt.exitCode, 2);
  EXPECT_TRUE(has(misspelt.err, "there is no recipe 'mxpf8'")) << misspelt.err;
}

TEST(Messages, SayWhichCommandThereIsNot) {
  const ProgramResult result = fuseline("runn " + samplePipeline());
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "fuseline runn: there is no such command; did you mean run?")) << result.err;
}

TEST(Messages, SayWhichOptionThereIsNot) {
  const ProgramResult result = fuseline("run --wamup 3 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_EQ(result.err,
            "fuseline run: there is no option --wamup; did you mean --warmup? `fuseline run --help` lists its "
            "options.\n");
  EXPECT_TRUE(has(fuselineBench("gpu --qick").err, "fuseline-bench: there is no option --qick; did you mean --quick?"));
}

TEST(Messages, NameTheProgramOfBenchmarks) {
  const ProgramResult result = fuseline("bench ops --quick");
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "fuseline-bench")) << result.err;
  EXPECT_FALSE(has(fuseline("--help").out, "bench"));
}

TEST(Messages, SayWhichArgumentIsTooMany) {
  const ProgramResult result = fuseline("run a b c");
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "fuseline run: 'b' is one argument too many.")) << result.err;
}

TEST(Messages, SayWhichArgumentIsMissing) {
  EXPECT_EQ(fuseline("fuse").err, "fuseline fuse: FILE is required. `fuseline fuse --help` lists its options.\n");
}

/// The line without names of files, and without a list after its last colon.
std::string messageOf(const std::string& line) {
  static const std::regex path("'?/[^ :']*'?");
  const std::string text = std::regex_replace(line, path, "FILE");
  const std::size_t list = text.rfind(": ");
  const bool hasList = list != std::string::npos && std::ranges::count(text.substr(list), ',') > 2;
  return hasList ? text.substr(0, list) : text;
}

TEST(Messages, HaveAtMost200Characters) {
  for (const char* file : {"broken.fuseline", "formula_broken.fuseline", "nested.fuseline", "sample.fuseline"})
    for (const char* arguments :
         {"validate ", "fuse --recipe nope ", "fuse --device sm_90 --recipe nvfp4 ", "infer --set Q=3 ",
          "run --capture q ", "edit --insert Nope --before fc1 ", "explain nope ", "export --to onnx ",
          "export --to torch ", "export --to dlfw-inspect ", "export --to te --recipe mxfp8 ",
          "fuse --ranks 3 --format plan "}) {
      const ProgramResult result = fuseline(arguments + quoted(goldenPath(file)));
      std::istringstream lines(result.err);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(messageOf(line).size(), 220u) << arguments << file << ": " << line;  // with its place and its code
    }
}

TEST(Messages, TellAnAmbiguousRecipeFromAnUnknownOne) {
  const ProgramResult result = fuseline("fuse --device reference --recipe Float8 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "several recipes: Float8CurrentScaling, Float8BlockScaling")) << result.err;
}

TEST(Messages, SayWhatABandwidthIs) {
  const ProgramResult result = fuseline("fuse --bandwidth -1 " + samplePipeline());
  EXPECT_TRUE(has(result.err, "expected a number above 0, found -1")) << result.err;
}

TEST(New, ReplacesAFileOnRequestOnly) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "mine.fuseline");
  ASSERT_EQ(fuseline("new linear-bias -o " + file).exitCode, 0);
  const std::string mine = fuseline("infer --json " + file).out;
  const ProgramResult again = fuseline("new llama-mlp -o " + file);
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
  EXPECT_EQ(fuseline("infer --json " + file).out, mine);
  EXPECT_EQ(fuseline("new llama-mlp --force -o " + file).exitCode, 0);
  EXPECT_NE(fuseline("infer --json " + file).out, mine);
}

TEST(Validate, WarnsOfASwitchThatSwitchesNothing) {
  const TemporaryFolder folder;
  Json pipeline = Json::parse(fuseline("new llama-mlp").out);
  pipeline["pipeline"]["ops"].back()["attributes"]["in_place"] = false;
  pipeline["fusion"]["without"] = {"ForwardLinearEpilogue@fc1", "ForwardLinearEpilogue@fc9"};
  writeText(folder / "p.fuseline", pipeline.dump());
  const Json found = fuseline("validate --json " + quoted(folder / "p.fuseline")).json();
  EXPECT_TRUE(found["isValid"]);
  ASSERT_EQ(found["diagnostics"].size(), 1U) << found;
  EXPECT_EQ(found["diagnostics"][0]["code"], "idle-switch");
  EXPECT_TRUE(has(found["diagnostics"][0]["message"].get<std::string>(), "ForwardLinearEpilogue@fc9")) << found;
}

TEST(Messages, SuggestTheNearestName) {
  EXPECT_TRUE(has(fuseline("ops RMSNrom").err, "did you mean RMSNorm?"));
  EXPECT_TRUE(has(fuseline("rules ForwardLinearBiasAd").err, "did you mean ForwardLinearBiasAdd?"));
}

/// Words are broken into lines, and none is lost.
TEST(Fuse, AndExplainKeepWithinAHundredTwentyColumns) {
  const TemporaryFolder folder;
  const std::string pipeline = quoted(folder / "gpt.fuseline");
  ASSERT_EQ(fuseline("new gpt-mlp -o " + pipeline).exitCode, 0);
  for (const char* verb : {"fuse ", "explain "}) {
    const ProgramResult result = fuseline(std::string(verb) + "--device reference --recipe delayed " + pipeline);
    ASSERT_EQ(result.exitCode, 0) << result.err;
    expectNarrow(result.out);
    EXPECT_TRUE(has(result.out, "BackwardElementwiseChain")) << result.out;
  }
}

TEST(Fuse, MeetsItsOwnExpectation) {
  const TemporaryFolder folder;
  writeText(folder / "plan.json", fuseline("fuse --device reference --format json " + samplePipeline()).out);
  const ProgramResult result =
      fuseline("fuse --device reference --expect " + quoted(folder / "plan.json") + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
}

TEST(Fuse, ShowsTheDifferenceToAnotherPlan) {
  const TemporaryFolder folder;
  writeText(folder / "plan.json", fuseline("fuse --device reference --format json " + samplePipeline()).out);
  const ProgramResult result = fuseline("fuse --device reference --without ForwardLinearEpilogue --expect " +
                                        quoted(folder / "plan.json") + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 5);
  EXPECT_TRUE(has(result.err, "  - ForwardLinearEpilogue (fc1.linear, fc1.bias, act)")) << result.err;
  EXPECT_TRUE(has(result.err, "  + ")) << result.err;
}

TEST(Fuse, RefusesAnExpectationOfARuleThatThereIsNot) {
  const TemporaryFolder folder;
  writeText(folder / "plan.json",
            R"({"forward": [{"name": "ForwardLinearEpilog", "rule": "ForwardLinearEpilog", "ops": ["fc1.linear"]}],
                "backward": []})");
  const ProgramResult result =
      fuseline("fuse --device reference --expect " + quoted(folder / "plan.json") + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err,
                  "/forward/0/rule: there is no rule ForwardLinearEpilog; did you mean "
                  "ForwardLinearEpilogue?"))
      << result.err;
}

TEST(Annotate, GitHubReadsProblemsFromStandardOutput) {
  const TemporaryFolder folder;
  const ProgramResult problems =
      fuseline("validate --annotate github broken.fuseline", {}, goldenPath("broken.fuseline").parent_path());
  EXPECT_EQ(problems.exitCode, 1);
  EXPECT_TRUE(problems.out.starts_with("::error file=broken.fuseline,line=")) << problems.out;
  writeText(folder / "plan.json", fuseline("fuse --device reference --format json " + samplePipeline()).out);
  const ProgramResult plan =
      fuseline("fuse --annotate github --device reference --without ForwardLinearEpilogue --expect " +
               quoted(folder / "plan.json") + " " + samplePipeline());
  EXPECT_EQ(plan.exitCode, 5);
  EXPECT_TRUE(has(plan.out, "%0A  - ForwardLinearEpilogue (fc1.linear, fc1.bias, act)%0A")) << plan.out;
  EXPECT_EQ(fuseline("validate --json --annotate github " + samplePipeline()).exitCode, 2);
}

TEST(Fuse, RefusesAnExpectationThatIsNoPlan) {
  const ProgramResult result =
      fuseline("fuse --device reference --expect " + samplePipeline() + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1);
}

/// Wherever a fusion is told of that is left to the user, and by the entry that uses it.
TEST(Fuse, SaysHowAFusionIsAskedFor) {
  const TemporaryFolder folder;
  const std::string pipeline = quoted(folder / "mlp.fuseline");
  ASSERT_EQ(fuseline("new llama-mlp -o " + pipeline).exitCode, 0);
  const std::string entry = "ForwardBackwardSwiGLULinear@act";
  for (const std::string verb : {"fuse ", "explain ", "rules ForwardBackwardSwiGLULinear --in "}) {
    const std::string said = fuseline(verb + pipeline).out;
    EXPECT_TRUE(has(said, entry)) << said;
  }
  const Json plan = fuseline("fuse --json " + pipeline).json();
  EXPECT_TRUE(std::ranges::any_of(plan["attempts"], [&](const Json& attempt) { return attempt["request"] == entry; }));
  EXPECT_TRUE(has(fuseline("fuse --with " + entry + " " + pipeline).out, "ForwardBackwardSwiGLULinear (joint"));
}

TEST(Fuse, SwitchesAFusionOff) {
  const std::string arguments = "fuse --device reference --format json " + samplePipeline();
  const auto isFused = [](const Json& plan) {
    return std::ranges::any_of(plan["forward"], [](const Json& entry) {
      return entry["rule"] == "ForwardLinearEpilogue" && entry["ops"].front() == "fc1.linear";
    });
  };
  EXPECT_TRUE(isFused(fuseline(arguments).json()));
  EXPECT_FALSE(isFused(fuseline(arguments + " --without ForwardLinearEpilogue").json()));
  EXPECT_FALSE(isFused(fuseline(arguments + " --without ForwardLinearEpilogue@fc1").json()));
  EXPECT_TRUE(isFused(fuseline(arguments + " --without ForwardLinearEpilogue@fc2").json()));
  EXPECT_FALSE(isFused(fuseline(arguments + " --rules te").json()));
}

TEST(Fuse, RefusesToSwitchOffARuleThatDoesNotExist) {
  const ProgramResult result = fuseline("fuse --device reference --without Nope " + samplePipeline());
  EXPECT_NE(result.exitCode, 0);
  EXPECT_TRUE(has(result.err, "Nope")) << result.err;
}

TEST(Run, WritesARecordThatNamesThePipeline) {
  const TemporaryFolder folder;
  const ProgramResult result = fuseline("run --device reference --iterations 2 --quiet --set M=3 -o " +
                                        quoted(folder / "run.json") + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const Json record = Json::parse(readText(folder / "run.json"));
  EXPECT_EQ(record["format"], "fuseline-run");
  EXPECT_EQ(record["pipelineName"], "sample");
  EXPECT_EQ(record["settings"]["symbols"]["M"], 3);
  EXPECT_EQ(record["pipeline"]["format"], "fuseline-pipeline");
  EXPECT_EQ(record["variants"][0]["endToEndNs"].size(), 2u);
}

TEST(Export, WritesTheTraceOfARunUnderTheNamesOfItsSteps) {
  const TemporaryFolder folder;
  const std::string run = quoted(folder / "a.fuserun");
  const std::string trace = quoted(folder / "a.json");
  ASSERT_EQ(fuseline("run --device reference --iterations 3 --quiet -o " + run + " " + samplePipeline()).exitCode, 0);
  const ProgramResult written = fuseline("export " + run + " --to trace -o " + trace);
  EXPECT_EQ(written.exitCode, 0) << written.err;
  EXPECT_EQ(written.out, "");
  const Json record = Json::parse(readText(folder / "a.fuserun"));
  const Json events = Json::parse(readText(folder / "a.json"));
  std::size_t numSteps = 0;
  for (const Json& event : events["traceEvents"]) numSteps += event["ph"] == "X" && event["cat"] == "step";
  std::size_t numLaunched = 0;
  for (const Json& variant : record["variants"])
    for (const Json& step : variant["steps"]) numLaunched += !step["isView"].get<bool>();
  EXPECT_EQ(numSteps, numLaunched);
  const ProgramResult again = fuseline("export " + run + " --to csv -o " + trace);
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(has(again.err, "--force overwrites it")) << again.err;
  EXPECT_TRUE(has(fuseline("export " + run + " --to csv").out, "end to end"));
}

TEST(Compare, HoldsTheNewRunAgainstGates) {
  const TemporaryFolder folder;
  const std::string base = quoted(folder / "a.fuserun");
  const std::string next = quoted(folder / "b.fuserun");
  for (const auto& [run, options] : {std::pair(base, ""), {next, " --set M=9"}})
    ASSERT_EQ(
        fuseline("run --device reference --iterations 7 --quiet -o " + run + options + " " + samplePipeline()).exitCode,
        0);
  const ProgramResult shown = fuseline("compare " + base + " " + next);
  EXPECT_EQ(shown.exitCode, 0) << shown.err;
  for (const char* part : {"symbol M: 4 -> 9", "end to end, fused", "speedup", "launches", "ForwardLinearEpilogue"})
    EXPECT_TRUE(has(shown.out, part)) << part << "\n" << shown.out;
  const ProgramResult failed =
      fuseline("compare " + base + " " + next + " --fail-if 'peak>+1%' --fail-if 'launches>+0%'");
  EXPECT_EQ(failed.exitCode, 5);
  EXPECT_TRUE(has(failed.err, "1 of 2 conditions of --fail-if failed; the first is peak>+1%")) << failed.err;
  EXPECT_EQ(fuseline("compare " + base + " " + base + " --fail-if 'median>+0%' --fail-if 'step>+0%'").exitCode, 0);
  EXPECT_EQ(fuseline("compare " + base + " " + next + " --fail-if nonsense").exitCode, 2);
  EXPECT_EQ(fuseline("compare " + base + " " + samplePipeline()).exitCode, 1);
  const ProgramResult json = fuseline("compare --json " + base + " " + next);
  EXPECT_EQ(schemaProblem(fuseline("schema --of compare").json(), json.json()), "");
}

TEST(Compare, SetsTheNewRunBesideSeveral) {
  const TemporaryFolder folder;
  const std::string base = quoted(folder / "a.fuserun");
  const std::string other = quoted(folder / "b.fuserun");
  const std::string next = quoted(folder / "c.fuserun");
  for (const auto& [run, options] : {std::pair(base, " --note first"), {other, " --rules te"}, {next, ""}})
    ASSERT_EQ(
        fuseline("run --device reference --iterations 3 --quiet -o " + run + options + " " + samplePipeline()).exitCode,
        0);
  std::ofstream(folder / "notes.json") << R"({"format": "fuseline-run-notes", "notes": [{"file": "b.fuserun", )"
                                          R"("text": "its own rules", "rows": [{"step": "a step", )"
                                          R"("phase": "forward", "text": "of interest"}], )"
                                          R"("stretches": [{"variant": "fused", "startNs": 1000, "endNs": 2000, )"
                                          R"("text": "a gap"}]}]})";
  const std::string all = "compare " + base + " " + next + " --with " + other;
  const ProgramResult shown = fuseline(all + " --fail-if 'launches<+0%' --report " + quoted(folder / "c.html"));
  EXPECT_EQ(shown.exitCode, 0) << "gates are about the first: " << shown.err;
  EXPECT_EQ(fuseline(all + " --report " + quoted(folder / "c.html")).exitCode, 2) << "it exists";
  EXPECT_EQ(fuseline(all + " --force --report " + quoted(folder / "c.html")).exitCode, 0);
  for (const char* part : {"b.fuserun, its own rules\n   rules: te -> all", "Against B: ", " gone.", "gone\n", "new\n",
                           "  its own rules\n  a step (forward): of interest\n  fused, 1.00 us to 2.00 us: a gap"})
    EXPECT_TRUE(has(shown.out, part)) << part << "\n" << shown.out;
  EXPECT_FALSE(has(shown.out, "Against A")) << "the same plan has no new steps";
  EXPECT_EQ(fuseline("compare " + other + " " + next + " --fail-if 'launches<+0%'").exitCode, 5);
  EXPECT_TRUE(has(fuseline("export --to markdown " + other).out, "`its own rules`"));
  const Json json = fuseline(all + " --json").json();
  EXPECT_EQ(schemaProblem(fuseline("schema --of compare").json(), json), "");
  EXPECT_EQ(json["others"][0]["notes"]["note"], "its own rules");
  EXPECT_EQ(json["others"][0]["notes"]["timeRangeNotes"][0]["text"], "a gap");
  EXPECT_EQ(json["notes"]["base"]["note"], "first");
  const ProgramResult page = fuseline("compare " + base + " " + quoted(folder / "c.html"));
  EXPECT_EQ(page.exitCode, 0) << "a page is a run as well: " << page.err;
}

TEST(Export, OfAPipelineIsReadBackByImport) {
  const TemporaryFolder folder;
  const std::string script = quoted(folder / "sample.py");
  const ProgramResult written = fuseline("export " + samplePipeline() + " --to te --set M=6 -o " + script);
  EXPECT_EQ(written.exitCode, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(fuseline("export " + samplePipeline() + " --to te -o " + script).exitCode, 2) << "it exists";
  const ProgramResult imported = fuseline("import " + script + " -o " + quoted(folder / "again.fuseline"));
  EXPECT_EQ(imported.exitCode, 0) << imported.err;
  Json expected = Json::parse(readText(goldenPath("sample.fuseline")));
  expected["symbols"]["M"] = 6;
  EXPECT_EQ(Json::parse(readText(folder / "again.fuseline")), expected);
  EXPECT_EQ(fuseline("fuse --device reference " + script).out,
            fuseline("fuse --device reference --set M=6 " + samplePipeline()).out);
  const std::string whole = readText(folder / "sample.py");
  writeText(folder / "cut.py", whole.substr(0, whole.size() - 30));
  const ProgramResult cut = fuseline("import " + quoted(folder / "cut.py"));
  EXPECT_EQ(cut.exitCode, 1);
  EXPECT_TRUE(has(cut.err, "with a pipeline file in comments")) << cut.err;
}

TEST(Import, OfARunIsThePipelineAsItWasMeasured) {
  const TemporaryFolder folder;
  const std::string run = quoted(folder / "a.fuserun");
  ASSERT_EQ(
      fuseline("run --device reference --iterations 1 --warmup 0 --set M=6 --quiet -o " + run + " " + samplePipeline())
          .exitCode,
      0);
  EXPECT_EQ(fuseline("import " + run).json()["symbols"]["M"], 6);
}

TEST(Numerics, HoldsFusionAgainstGates) {
  const TemporaryFolder folder;
  const std::string run =
      "run --device reference --iterations 1 --warmup 0 --force -o " + quoted(folder / "a.fuserun") + " ";
  const ProgramResult met = fuseline(run + "--fail-if 'error>tolerance' " + samplePipeline());
  EXPECT_EQ(met.exitCode, 0) << met.err;
  EXPECT_TRUE(has(met.out, "fused against unfused: pass; the worst is ")) << met.out;
  EXPECT_TRUE(has(met.out, "passed error>tolerance: the largest is ")) << met.out;
  const Json verdict = Json::parse(readText(folder / "a.fuserun"))["numerics"]["fusion"];
  EXPECT_TRUE(verdict["isWithin"]);
  EXPECT_LE(verdict["toleranceShare"].get<double>(), 1.0);
  const ProgramResult failed = fuseline(run + "--fail-if 'float-error>0%' " + samplePipeline());
  EXPECT_EQ(failed.exitCode, 5);
  EXPECT_TRUE(has(failed.err, "1 of 1 conditions of --fail-if failed; the first is float-error>0%")) << failed.err;
  EXPECT_EQ(fuseline(run + "--fail-if 'median>+5%' " + samplePipeline()).exitCode, 2);
  EXPECT_EQ(fuseline(run + "--fail-if 'error>5%' --no-numerics " + samplePipeline()).exitCode, 2);
}

TEST(Export, SaysWhatItTakes) {
  EXPECT_TRUE(has(fuseline("export").out, "ui.perfetto.dev"));
  const ProgramResult foreign = fuseline("export x.fuserun --to te");
  EXPECT_EQ(foreign.exitCode, 1);
  EXPECT_TRUE(has(foreign.err, "expected a pipeline, found a run")) << foreign.err;
  EXPECT_EQ(fuseline("export x.fuserun --to trace --rules te").exitCode, 2);
  const ProgramResult pipeline = fuseline("export " + samplePipeline() + " --to trace");
  EXPECT_EQ(pipeline.exitCode, 1);
  EXPECT_TRUE(has(pipeline.err, "expected a run, found a pipeline. Measure it first")) << pipeline.err;
  EXPECT_EQ(fuseline("export x.fuserun").exitCode, 2);
  const ProgramResult unknown = fuseline("export x.fuserun --to trase");
  EXPECT_EQ(unknown.exitCode, 2);
  EXPECT_TRUE(has(unknown.err,
                  "did you mean trace? Valid values: te, torch, svg, dot, plan, dlfw-inspect, onnx, trace, folded, "
                  "csv, markdown, html."))
      << unknown.err;
  EXPECT_EQ(fuseline("export x.fuserun --to trace").exitCode, 1);
}

std::string bytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Export, BytesGoToFilesOnly) {
  const ProgramResult printed = fuseline("export --to onnx " + samplePipeline());
  EXPECT_EQ(printed.exitCode, 2);
  EXPECT_TRUE(printed.out.empty());
  EXPECT_TRUE(has(printed.err, "the format is not text, so it needs a file: -o ")) << printed.err;
  const TemporaryFolder folder;
  const std::string model = quoted(folder / "model.onnx");
  const ProgramResult listed = fuseline("export --to onnx --json -o " + model + " " + samplePipeline());
  EXPECT_EQ(listed.exitCode, 0) << listed.err;
  const Json json = listed.json();
  EXPECT_TRUE(has(json["text"], "ONNX, opset 20")) << json["text"];
  EXPECT_TRUE(has(json["text"], "nodes\n")) << json["text"];
  EXPECT_TRUE(has(bytesOf(folder / "model.onnx"), "fuseline.pipeline_hash"));
}

TEST(Import, ReadsModelsAndSaysWhatTheyAreNot) {
  const TemporaryFolder folder;
  const std::string model = quoted(folder / "model.onnx");
  ASSERT_EQ(fuseline("export --to onnx -o " + model + " " + samplePipeline()).exitCode, 0);
  const ProgramResult imported = fuseline("import " + model);
  EXPECT_EQ(imported.exitCode, 0) << imported.err;
  EXPECT_EQ(imported.out, fuseline("import " + samplePipeline()).out);
  EXPECT_EQ(fuseline("fuse --format json " + model).out, fuseline("fuse --format json " + samplePipeline()).out);
  std::ofstream(folder / "none.onnx") << "none";
  const ProgramResult none = fuseline("import " + quoted(folder / "none.onnx"));
  EXPECT_EQ(none.exitCode, 1);
  EXPECT_TRUE(has(none.err, "expected an ONNX model")) << none.err;
}

// Ten steps at once and in two parts give the same state; the update is a step of both plans.
TEST(Run, UpdatesParametersWithAnOptimizer) {
  const TemporaryFolder folder;
  const auto stateAfter = [&](int steps, const std::string& options, const std::string& name) {
    const std::string run = fmt::format(
        "run --optimizer adamw --optimizer-set lr=0.01 --optimizer-set max_grad_norm=0.5 --optimizer-set "
        "schedule=linear --optimizer-set training_steps=20 --warmup 0 --iterations {} ",
        steps);
    const ProgramResult result = fuseline(run + options + " -o " + quoted(folder / (name + ".fuserun")) + " --save " +
                                          quoted(folder / (name + ".safetensors")) + " " + samplePipeline());
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_TRUE(has(result.out, "AdamW")) << result.out;
    return bytesOf(folder / (name + ".safetensors"));
  };
  const std::string whole = stateAfter(10, "--device reference", "ten");
  (void)stateAfter(4, "--device reference", "four");
  EXPECT_EQ(stateAfter(6, "--device reference --tensors " + quoted(folder / "four.safetensors"), "rest"), whole);
  const Result<RunRecord> record = loadRunRecord(folder / "ten.fuserun");
  ASSERT_TRUE(record);
  for (const VariantRecord& variant : record->variants) {
    EXPECT_EQ(variant.steps.back().kernel, "adamw");
    EXPECT_EQ(variant.steps.back().phase, "optimizer");
    EXPECT_EQ(variant.steps.back().samplesNs.size(), 10U);
    EXPECT_GT(variant.steps.back().bytes, 0);
  }
}

TEST(Export, ProgramsTrainWithTheOptimizer) {
  for (const std::string format : {"te", "torch"}) {
    const std::string plain = fuseline("export --to " + format + " " + samplePipeline()).out;
    EXPECT_TRUE(has(plain, "HAS_OPTIMIZER = False") && !has(plain, "ADAMW")) << plain;
    const std::string options = " --optimizer adamw --optimizer-set lr=0.01 --optimizer-set max_grad_norm=0.5 ";
    const std::string trained = fuseline("export --to " + format + options + samplePipeline()).out;
    for (const char* part : {"\"lr\": 0.01", "MAX_GRAD_NORM = 0.5", "class Optimizer:", "HAS_OPTIMIZER = True"})
      EXPECT_TRUE(has(trained, part)) << format << ": " << part;
    const std::string module = fuseline("export --module-only --to " + format + options + samplePipeline()).out;
    EXPECT_TRUE(has(module, "class Optimizer:") && has(module, "import math")) << module;
  }
  const ProgramResult drawing = fuseline("export --to onnx --optimizer adamw " + samplePipeline());
  EXPECT_TRUE(has(drawing.err, "has no optimizer")) << drawing.err;
}

TEST(Export, WeightsAreThoseOfTheSeedOrOfAFile) {
  const TemporaryFolder folder;
  const auto modelOf = [&](const std::string& options) {
    const std::string path = quoted(folder / "model.onnx");
    const ProgramResult result =
        fuseline("export --to onnx --force -o " + path + " " + options + " " + samplePipeline());
    EXPECT_EQ(result.exitCode, 0) << result.err;
    return bytesOf(folder / "model.onnx");
  };
  const std::string state = quoted(folder / "state.safetensors");
  ASSERT_EQ(fuseline("run --device reference --variants unfused --iterations 1 --quiet --seed 7 --save " + state + " " +
                     samplePipeline())
                .exitCode,
            0);
  EXPECT_EQ(modelOf("--tensors " + state), modelOf("--seed 7"));
  EXPECT_NE(modelOf("--seed 8"), modelOf("--seed 7"));
  const ProgramResult withoutWeights = fuseline("export --to te --seed 7 " + samplePipeline());
  EXPECT_EQ(withoutWeights.exitCode, 2);
  EXPECT_TRUE(has(withoutWeights.err, "--seed is an option for formats with weights, such as --to onnx"))
      << withoutWeights.err;
}

TEST(Export, AFormatOfBothTakesWhatTheFileHolds) {
  EXPECT_TRUE(has(fuseline("export --to dlfw-inspect " + samplePipeline()).out, "'^(fc1|fc2)$'"));
  const TemporaryFolder folder;
  const std::string run = quoted(folder / "run.fuserun");
  ASSERT_EQ(fuseline("run --device reference --iterations 1 --quiet -o " + run + " " + samplePipeline()).exitCode, 0);
  const ProgramResult result = fuseline("export --to dlfw-inspect " + run);
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "this run has none. Measure them (")) << result.err;
  EXPECT_EQ(fuseline("export --to dlfw-inspect --set M=8 " + run).exitCode, 2);
}

TEST(Rules, OptionsOfPlansNeedAPipeline) {
  const ProgramResult alone = fuseline("rules --set M=8");
  EXPECT_EQ(alone.exitCode, 2);
  EXPECT_TRUE(has(alone.err, "--set needs --in")) << alone.err;
  EXPECT_EQ(fuseline("rules NoSuchRule --in " + samplePipeline()).exitCode, 2);
  EXPECT_EQ(fuseline("rules --in nowhere.fuseline").exitCode, 1);
}

// The savings of the rules sum to those that `fuse` reports for each fusion.
TEST(Rules, SavingsAreThoseOfTheFusions) {
  const Json attempts = fuseline("fuse --device reference --json " + samplePipeline()).json()["attempts"];
  const Json rules =
      fuseline("rules --device reference --bandwidth 2 --launch 3 --json --in " + samplePipeline()).json()["rules"];
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
  for (const Json& attempt : attempts) {
    if (attempt["outcome"] != "fused" || attempt["saving"].is_null()) continue;
    bytes += attempt["saving"]["bytes"].get<std::int64_t>();
    launches += attempt["saving"]["launches"].get<std::int64_t>();
  }
  ASSERT_GT(bytes, 0);
  for (const Json& rule : rules) {
    const Json& use = rule["use"];
    bytes -= use["bytesSaved"].get<std::int64_t>();
    launches -= use["launchesSaved"].get<std::int64_t>();
    EXPECT_DOUBLE_EQ(use["predictedNs"],
                     use["bytesSaved"].get<double>() / 2 + 3e3 * use["launchesSaved"].get<double>());
  }
  EXPECT_EQ(bytes, 0);
  EXPECT_EQ(launches, 0);
}

TEST(Run, PrintsEveryFusedOpWithItsBasicOpsInAHundredTwentyColumns) {
  const ProgramResult result = fuseline("run --device reference --iterations 2 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* part : {"ForwardLinearEpilogue", "├ fc1.linear", "├ fc1.bias", "└ act", "sum of the steps",
                           "end to end", "cost of the clocks", "peak memory", "saved for backward"})
    EXPECT_TRUE(has(result.out, part)) << part << "\n" << result.out;
  EXPECT_FALSE(has(result.out, "\033[")) << "colour belongs on a terminal only";
  expectNarrow(result.out);
}

TEST(Run, ShowsHowFarStepsAreFromThePeaksOfTheDevice) {
  const std::string run = "run --iterations 1 --warmup 0 " + samplePipeline();
  const std::string peaked = fuseline(run).out;
  for (const char* part : {"peaks, measured in this run: copy ", "GB/s", "FLOP/s", "x limit", "bound", "memory"})
    EXPECT_TRUE(has(peaked, part)) << part << peaked;
  const std::string plain = fuseline(run + " --no-roofs").out;  // the former name of --no-peaks
  EXPECT_FALSE(has(plain, "oofs")) << plain;
  EXPECT_TRUE(has(plain, "fused GB/s")) << plain;
  const Json reference = fuseline(run + " --device reference --json").json()["record"];
  EXPECT_TRUE(reference["peaks"].is_null());
  EXPECT_TRUE(has(reference["peaksNote"].get<std::string>(), "reference: it is not a performance target"));
}

TEST(Run, DumpsBothVariantsUnderTheirNames) {
  const TemporaryFolder folder;
  const ProgramResult result = fuseline("run --device reference --iterations 1 --quiet --dump " +
                                        quoted(folder / "dump.safetensors") + " " + samplePipeline());
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Result<NamedTensors> dump = readSafetensors(folder / "dump.safetensors");
  ASSERT_TRUE(dump) << dump.error().message;
  for (const char* name : {"unfused/x", "unfused/fc1.weight", "unfused/norm:y", "unfused/y", "unfused/grad.x",
                           "unfused/grad.fc1.weight", "fused/y", "fused/grad.x"})
    EXPECT_NE(findTensor(*dump, name), nullptr) << name;
}

TEST(Run, TakesTensorsFromAFile) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::fromDoubles({DType::BF16, {4, 8}}, std::vector<double>(32, 0.25));
  ASSERT_TRUE(writeSafetensors(folder / "in.safetensors", {{"x", x}}));
  const ProgramResult result = fuseline("run --device reference --iterations 1 --quiet --variants unfused --tensors " +
                                        quoted(folder / "in.safetensors") + " --dump " +
                                        quoted(folder / "out.safetensors") + " " + samplePipeline());
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Result<NamedTensors> dump = readSafetensors(folder / "out.safetensors");
  ASSERT_TRUE(dump) << dump.error().message;
  ASSERT_NE(findTensor(*dump, "x"), nullptr);
  EXPECT_EQ(findTensor(*dump, "x")->data, x.data);
  // RMSNorm of a constant row is 1 for the initial weight of 1, up to eps: 0.25 / sqrt(0.0625 + 1e-5).
  ASSERT_NE(findTensor(*dump, "norm:y"), nullptr);
  for (const double value : findTensor(*dump, "norm:y")->toDoubles()) EXPECT_NEAR(value, 1.0, 0.01);
}

/// The sample pipeline, its linear layers adding to main_grad buffers.
std::string accumulatingPipeline(const TemporaryFolder& folder) {
  std::string text = readText(goldenPath("sample.fuseline"));
  const std::string feature = "\"in_features\"";
  for (auto at = text.find(feature); at != std::string::npos; at = text.find(feature, at + 64))
    text.insert(at, "\"accumulate_into_main_grad\": true, ");
  const auto path = folder / "accumulating.fuseline";
  writeText(path, text);
  return quoted(path);
}

NamedTensors savedState(const std::string& arguments, const TemporaryFolder& folder, const char* name) {
  const auto path = folder / name;
  const ProgramResult result =
      fuseline("run --device reference --iterations 1 --quiet --save " + quoted(path) + " " + arguments);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  Result<NamedTensors> state = readSafetensors(path);
  EXPECT_TRUE(state) << state.error().message;
  return state ? *state : NamedTensors{};
}

TEST(Run, SavesParametersAndMainGradBuffersAndTakesThemBackBitForBit) {
  const TemporaryFolder folder;
  const std::string pipeline = accumulatingPipeline(folder);
  const NamedTensors first = savedState("--seed 5 " + pipeline, folder, "first.safetensors");
  for (const char* name : {"norm.weight", "fc1.weight", "fc1.bias", "main_grad.fc1.weight"})
    EXPECT_NE(findTensor(first, name), nullptr) << name;
  EXPECT_EQ(findTensor(first, "x"), nullptr) << "an input is no state";
  const NamedTensors second = savedState("--seed 9 --tensors " + quoted(folder / "first.safetensors") + " " + pipeline,
                                         folder, "second.safetensors");
  for (const auto& [name, tensor] : first) {
    ASSERT_NE(findTensor(second, name), nullptr) << name;
    const bool isBuffer = name.starts_with("main_grad.");  // the second run has added to it
    EXPECT_EQ(findTensor(second, name)->data == tensor.data, !isBuffer) << name;
  }
}

TEST(Run, RefusesATensorThatThePipelineDoesNotTake) {
  const TemporaryFolder folder;
  ASSERT_TRUE(writeSafetensors(folder / "in.safetensors", {{"z", Tensor::zeros({DType::BF16, {4, 8}})}}));
  const ProgramResult result =
      fuseline("run --device reference --tensors " + quoted(folder / "in.safetensors") + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "z: the pipeline has no tensor of this name")) << result.err;
}

TEST(Run, RunsAFormula) {
  const ProgramResult result = fuseline("run --iterations 1 --json " + goldenPath("formula.fuseline").string());
  EXPECT_EQ(result.exitCode, 0) << result.err;
}

TEST(New, WritesWhatValidates) {
  const TemporaryFolder folder;
  const Json templates = fuseline("new --json").json()["templates"];
  ASSERT_GT(templates.size(), 5U);
  for (const Json& entry : templates) {
    const std::string name = entry["name"];
    ASSERT_EQ(fuseline("new --force " + name + " -o " + quoted(folder / "p.fuseline")).exitCode, 0) << name;
    EXPECT_EQ(fuseline("validate " + quoted(folder / "p.fuseline")).exitCode, 0) << name;
  }
}

TEST(Blocks, AreExplainedByTheOpsInTheirInstances) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "stack.fuseline");
  ASSERT_EQ(fuseline("new transformer-stack -o " + file).exitCode, 0);
  const ProgramResult inferred = fuseline("infer --device reference " + file);
  EXPECT_TRUE(has(inferred.out, "layer1.mlp.fc1")) << inferred.out;
  EXPECT_TRUE(has(inferred.out, "layer2.mlp.fc1")) << inferred.out;
  for (const char* op : {"layer2", "layer2.mlp", "layer2.mlp.fc1"}) {
    const ProgramResult explained = fuseline("explain --device reference " + file + " " + op);
    EXPECT_EQ(explained.exitCode, 0) << explained.err;
    EXPECT_TRUE(has(explained.out, "layer2.mlp.fc1")) << explained.out;
    EXPECT_FALSE(has(explained.out, "layer1.mlp.fc1")) << explained.out;
  }
}

TEST(Blocks, Run) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "stack.fuseline");
  ASSERT_EQ(fuseline("new transformer-stack -o " + file).exitCode, 0);
  const ProgramResult result =
      fuseline("run --device reference --iterations 2 --warmup 0 --set M=4 --set H=8 --set F=8 " + file);
  EXPECT_EQ(result.exitCode, 0) << result.err;
}

/// Runs the template with small sizes; splits: of its two groups over six rows.
ProgramResult runGroupedMlp(const std::string& options, const TemporaryFolder& folder,
                            const std::vector<double>& splits) {
  const std::string file = quoted(folder / "experts.fuseline");
  const std::string tensors = quoted(folder / "in.safetensors");
  EXPECT_EQ(fuseline("new --force grouped-mlp -o " + file).exitCode, 0);
  EXPECT_TRUE(
      writeSafetensors(folder / "in.safetensors", {{"splits", Tensor::fromDoubles({DType::I64, {2}}, splits)}}));
  return fuseline("run --iterations 1 --warmup 0 --set M=6 --set H=8 --set F=32 --set G=2 --tensors " + tensors + " " +
                  options + " " + file);
}

TEST(GroupedMlp, RunsOnEveryDeviceAndInBothPasses) {
  const TemporaryFolder folder;
  for (const char* options : {"--device cpu", "--device reference", "--device cpu --pass forward"})
    EXPECT_EQ(runGroupedMlp(options, folder, {6, 0}).exitCode, 0) << options;
}

TEST(GroupedMlp, FailsWithASentenceWhereSplitsDoNotFit) {
  const TemporaryFolder folder;
  for (const char* device : {"cpu", "reference"}) {
    const ProgramResult result = runGroupedMlp(std::string("--device ") + device, folder, {4, 3});
    EXPECT_EQ(result.exitCode, 4);
    EXPECT_TRUE(has(result.err, "fc1 (GroupedLinear, forward): split_sizes is [4, 3], but x has 6 rows")) << result.err;
  }
}

TEST(GroupedMlp, DrawsSplitsThatFit) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "experts.fuseline");
  ASSERT_EQ(fuseline("new grouped-mlp -o " + file).exitCode, 0);
  for (const char* seed : {"1", "2", "3"}) {
    const ProgramResult result = fuseline(
        "run --device reference --iterations 1 --warmup 0 --set M=6 --set H=8 "
        "--set F=32 --seed " +
        std::string(seed) + " " + file);
    EXPECT_EQ(result.exitCode, 0) << result.err;
  }
}

/// With a GPU the answer is a table; without one a sentence reports that nothing was probed.
TEST(Devices, ProbesWhatCanBeProbed) {
  EXPECT_TRUE(fuseline("devices --json").json()["gemms"].is_null());
  const Json products = fuseline("devices --probe --json").json()["gemms"];
  const std::string text = fuseline("devices --probe").out;
  EXPECT_EQ(has(text, "No device here uses a GEMM library"), products.empty()) << text;
  EXPECT_EQ(has(text, "GELU_AUX_BIAS"), !products.empty()) << text;
}

/// Only the steps of a layer that move its large tensors have rows: none of its thin GEMMs.
TEST(Bench, MeasuresWhatALayerQuantizes) {
  const Json suite = fuselineBench("ops --quick --json --only rmsnorm-linear").json();
  EXPECT_EQ(schemaProblem(fuselineBench("--schema").json(), suite), "");
  std::set<std::string> steps;
  for (const Json& row : suite["rows"])
    if (row["recipe"] == "DelayedScaling")
      steps.insert(row["phase"].get<std::string>() + " " + row["step"].get<std::string>());
  EXPECT_EQ(steps, (std::set<std::string>{"backward delayed_scaling", "backward norm", "forward down.quantize_input",
                                          "forward norm"}));
}

TEST(Bench, MeasuresNormsOfSeveralWidths) {
  const TemporaryFolder folder;
  const std::string text = fuselineBench("ops --quick --only RMSNorm --jsonl " + quoted(folder / "rows.jsonl")).out;
  std::istringstream lines(readText(folder / "rows.jsonl"));
  std::set<std::int64_t> widths;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const Json row = Json::parse(line);
    widths.insert(row["N"].get<std::int64_t>());
    const std::int64_t rows = (4 << 20) / (row["N"].get<std::int64_t>() * (row["dtype"] == "f32" ? 4 : 2));
    EXPECT_GE(row["bytes"], 2 * rows * row["N"].get<std::int64_t>() * 2) << row;
  }
  EXPECT_EQ(widths, (std::set<std::int64_t>{4095, 4096, 5120, 8192}));
  EXPECT_TRUE(has(text, "RMSNorm, N = 8192")) << text;
}

TEST(Bench, SaysWhichDeviceIsNotThere) {
  for (const char* suite : {"ops", "gpu"})
    EXPECT_EQ(fuselineBench(std::string("--quick --device cuda:99 ") + suite).exitCode, 3) << suite;
}

/// Sixteen rows are no block of 128, so that all would be measured in bf16.
TEST(Bench, DoesNotTimeARecipeWhereItQuantizesNothing) {
  const std::string name = "llama-mlp_8B_decode_MXFP8BlockScaling_forward";
  const Json rows = fuselineBench("gpu --json --device reference --only " + name).json()["rows"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0]["measured"].is_null());
  EXPECT_TRUE(has(rows[0]["reason"], "stays in bf16")) << rows[0]["reason"];
}

TEST(Bench, ListsItsCasesWithoutADevice) {
  const Json all = fuselineBench("gpu --list --json").json()["cases"];
  const Json some = fuselineBench("gpu --list --json --only llama-mlp_70B_").json()["cases"];
  EXPECT_GT(all.size(), 60u);
  EXPECT_EQ(some.size(), 12u);
  EXPECT_EQ(some[0]["name"], "llama-mlp_70B_none_forward");
  EXPECT_EQ(some[0]["isDefault"], false);
  EXPECT_EQ(fuselineBench("gpu --only nothing").exitCode, 2);
  EXPECT_EQ(fuselineBench("cpu --list").exitCode, 2);
  EXPECT_EQ(fuselineBench("ops --all").exitCode, 2);
}

TEST(Bench, SaysWhyADeviceHasNoPeaks) {
  const ProgramResult result = fuselineBench("ops --quick --device reference");
  EXPECT_TRUE(has(result.err, "so it has no peaks")) << result.err;
}

TEST(Devices, SaysWhyOneCannotRun) {
  const Json devices = fuseline("devices --json").json()["devices"];
  EXPECT_GE(devices.size(), 3u);
  for (const Json& device : devices) EXPECT_EQ(device["canRun"] == true, device["reason"] == "") << device.dump();
}

/// A run of the sample in which one fusion took `fusedNs` in every round, and every other step 50 ns.
std::string measuredRun(const TemporaryFolder& folder, double fusedNs) {
  const std::filesystem::path path = folder / "run.json";
  fuseline("run --device reference --quiet --iterations 1 --warmup 0 -o " + quoted(path) + " " + samplePipeline());
  Json run = Json::parse(readText(path));
  for (Json& variant : run["variants"])
    for (Json& step : variant["steps"]) {
      const bool isFused = step["name"] == "ForwardLinearEpilogue(fc2, add)";
      const double ns = isFused ? fusedNs : 50.0;
      step["samplesNs"] = std::vector<double>(10, ns);
    }
  writeText(path, run.dump());
  return quoted(path);
}

TEST(Measured, ASlowerFusionIsNotChosenAndTheReportHasTheFigure) {
  const TemporaryFolder folder;
  const std::string measured = " --measured " + measuredRun(folder, 150.0) + " " + samplePipeline();
  const ProgramResult fused = fuseline("fuse --device reference" + measured);
  EXPECT_EQ(fused.exitCode, 0) << fused.err;
  EXPECT_TRUE(has(fused.out, "measured slower")) << fused.out;
  EXPECT_TRUE(has(fused.out, "but measured to lose 50 ns (0.67x")) << fused.out;
  EXPECT_FALSE(has(fused.out, "[fc2 + add]")) << fused.out;
  const std::string asked = "fuse --device reference --with ForwardLinearEpilogue@fc2" + measured;
  EXPECT_TRUE(has(fuseline(asked).out, "[fc2 + add]"));
}

TEST(Measured, TheFigureOfAFasterFusionStandsInTheJson) {
  const TemporaryFolder folder;
  const std::string measured = " --measured " + measuredRun(folder, 80.0) + " " + samplePipeline();
  const Json plan = Json::parse(fuseline("fuse --device reference --format json" + measured).out);
  const auto isIt = [](const Json& attempt) {
    return attempt["rule"] == "ForwardLinearEpilogue" && attempt["ops"] == Json({"fc2", "add"});
  };
  const auto found = std::ranges::find_if(plan["attempts"], isIt);
  ASSERT_NE(found, plan["attempts"].end());
  EXPECT_DOUBLE_EQ((*found)["measured"]["gainNs"].get<double>(), 20.0);
  EXPECT_FALSE((*found)["saving"]["predictedNs"].is_null());
}

TEST(Measured, ARunOfOtherSizesIsRefused) {
  const TemporaryFolder folder;
  const ProgramResult result = fuseline("fuse --device reference --pass forward --measured " +
                                        measuredRun(folder, 80.0) + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "it was measured with pass train, but here it is forward.")) << result.err;
}

TEST(Measured, PredictionsAreTimesOnlyWithABandwidth) {
  const std::string explain = "explain --device reference " + samplePipeline() + " fc2";
  EXPECT_TRUE(has(fuseline(explain).out, "predicted to save 128 B and 1 launch"));
  // 128 B at 64 GB/s are 2 ns.
  const ProgramResult timed = fuseline(explain + " --bandwidth 64 --launch 3");
  EXPECT_TRUE(has(timed.out, "predicted to save 3.00 us (128 B and 1 launch)")) << timed.out;
  EXPECT_EQ(fuseline(explain + " --launch 3").exitCode, 2);
}

}  // namespace
}  // namespace fuseline::testing
