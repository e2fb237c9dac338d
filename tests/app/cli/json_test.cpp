// Every verb speaks JSON, with the fields that `fuseline schema --of VERB` documents.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/json_schema.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

Json schemaOf(const std::string& verb) { return fuseline("schema --of " + verb).json(); }

void expectFits(const std::string& verb, const std::string& arguments, int exitCode = 0) {
  const ProgramResult result = fuseline(verb + " --json " + arguments);
  EXPECT_EQ(result.exitCode, exitCode) << result.err;
  ASSERT_TRUE(Json::accept(result.out)) << result.out;
  EXPECT_EQ(schemaProblem(schemaOf(verb), result.json()), "");
}

TEST(JsonOutput, FitsItsSchema) {
  expectFits("new", "");
  expectFits("new", "llama-mlp");
  expectFits("ops", "");
  expectFits("ops", "BasicLinear");
  expectFits("rules", "");
  expectFits("rules", "--in " + samplePipeline());
  expectFits("rules", "--bandwidth 3000 --launch 2.5 --in " + samplePipeline());
  expectFits("recipes", "");
  expectFits("devices", "");
  expectFits("devices", "--probe");
  expectFits("validate", samplePipeline());
  expectFits("validate", "'" + goldenPath("broken.fuseline").string() + "'", 1);
  expectFits("validate", samplePipeline() + " '" + goldenPath("broken.fuseline").string() + "'", 1);
  expectFits("validate", "--repair '" + goldenPath("broken.fuseline").string() + "'", 1);
  expectFits("infer", "--device sm_90 " + samplePipeline());
  expectFits("fuse", "--device reference " + samplePipeline());
  expectFits("explain", "--device reference " + samplePipeline());
  expectFits("edit", "--insert GELU --after act --set-symbol M=8 " + samplePipeline());
  expectFits("suggest", "--device reference --rules te --bandwidth 100 --launch 2 " + samplePipeline());
  expectFits("diff", "--device reference " + samplePipeline() + " '" + goldenPath("nested.fuseline").string() + "'");
  expectFits("diff", "--view " + samplePipeline() + " '" + goldenPath("broken.fuseline").string() + "'");
  expectFits("diff", "--device reference --measure --iterations 1 --fail-if 'peak>+900%' " + samplePipeline() + " '" +
                         goldenPath("nested.fuseline").string() + "'");
  expectFits("run", "--device reference --iterations 2 --warmup 0 " + samplePipeline());
  expectFits("run", "--device reference --iterations 2 --variants fused " + samplePipeline());
  expectFits("run", "--device reference --iterations 1 --warmup 0 --recipe delayed --numerics " + samplePipeline());
  expectFits("run", "--device reference --iterations 1 --warmup 0 --recipe all " + samplePipeline());
  expectFits("run", "--device reference --iterations 1 --warmup 0 --capture norm " + samplePipeline());
  expectFits("run", "--device reference --capture-list " + samplePipeline());
  expectFits("guide", "");
  expectFits("guide", "shape-mismatch");
  expectFits("sweep", "--device reference --iterations 2 --warmup 0 --over M=2,4 --over H=8 " + samplePipeline());
  expectFits("export", "");
  expectFits("export", "--device reference --to te " + samplePipeline());
}

Json schemaOfBenchmarks() { return fuselineBench("--schema").json(); }

TEST(JsonOutput, OfBenchmarksFitsTheirSchema) {
  for (const char* arguments : {"scaling --quick", "gpu --list"}) {
    const ProgramResult result = fuselineBench(std::string("--json ") + arguments);
    EXPECT_EQ(result.exitCode, 0) << result.err;
    ASSERT_TRUE(Json::accept(result.out)) << result.out;
    EXPECT_EQ(schemaProblem(schemaOfBenchmarks(), result.json()), "") << arguments;
  }
}

/// The lines of --jsonl, put together to the one document that they are written for.
TEST(JsonOutput, OfABenchmarkIsAlsoWrittenLineByLine) {
  for (const std::string arguments :
       {"ops --quick --cold --device cpu --only GELU", "gpu --quick --device reference --only elementwise-chain"}) {
    const TemporaryFolder folder;
    const std::string call = "--json " + arguments + " --jsonl " + quoted(folder / "rows.jsonl");
    const ProgramResult result = fuselineBench(call);
    ASSERT_EQ(result.exitCode, 0) << result.err;
    std::istringstream lines(readText(folder / "rows.jsonl"));
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    Json suite = Json::parse(line);
    suite["rows"] = Json::array();
    while (std::getline(lines, line)) suite["rows"].push_back(Json::parse(line));
    EXPECT_EQ(schemaProblem(schemaOfBenchmarks(), suite), "") << arguments;
    EXPECT_EQ(suite["rows"].size(), result.json()["rows"].size());
  }
}

TEST(Bench, OverwritesAFileOnlyWithForce) {
  const TemporaryFolder folder;
  const std::string call =
      "gpu --quick --device reference --only elementwise-chain --jsonl " + quoted(folder / "rows.jsonl");
  EXPECT_EQ(fuselineBench(call).exitCode, 0);
  EXPECT_EQ(fuselineBench(call).exitCode, 2);
  EXPECT_EQ(fuselineBench(call + " --force").exitCode, 0);
}

TEST(JsonOutput, OfTheWorkerFitsItsSchemaLineByLine) {
  const Json numerics = {{"type", "numerics"},
                         {"id", 2},
                         {"pipeline", readText(goldenPath("sample.fuseline"))},
                         {"settings", {{"device", "reference"}, {"warmup", 0}}}};
  const TemporaryFolder folder;
  Json capture = numerics;
  capture["type"] = "capture";
  capture["capture"] = {
      {"tensors", {"norm:y"}}, {"file", (folder / "t.safetensors").string()}, {"limitBytes", 1 << 20}};
  const ProgramResult result = fuseline(
      "worker", "{\"type\":\"devices\",\"id\":1}\nnonsense\n" + numerics.dump() + "\n" + capture.dump() + "\n");
  const Json schema = schemaOf("worker");
  std::istringstream lines(result.out);
  std::set<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(schemaProblem(schema, Json::parse(line)), "") << line;
    types.insert(Json::parse(line)["type"]);
  }
  types.erase("progress");
  EXPECT_EQ(types, (std::set<std::string>{"hello", "devices", "error", "numerics", "captured"}));
}

TEST(JsonOutput, SchemaCheckerFindsProblems) {
  const Json schema = schemaOf("devices");
  EXPECT_EQ(schemaProblem(schema, Json::parse(R"({"devices":[],"gemms":null})")), "");
  EXPECT_EQ(schemaProblem(schema, Json::parse(R"({})")), "/devices: missing");
  EXPECT_EQ(schemaProblem(schema, Json::parse(R"({"devices":[],"gemms":null,"more":1})")), "/more: not in the schema");
  EXPECT_NE(schemaProblem(schema, Json::parse(R"({"devices":[3],"gemms":null})")), "");
}

TEST(JsonOutput, SchemaOfTheFileIsJson) {
  const Json schema = fuseline("schema").json();
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schemaProblem(schema, Json::parse(readText(goldenPath("sample.fuseline")))), "");
}

TEST(JsonOutput, EveryVerbOfTheHelpHasASchema) {
  for (const char* verb :
       {"new",  "ops", "rules", "recipes", "validate", "infer",  "fuse",  "explain", "edit",   "suggest",
        "diff", "run", "sweep", "devices", "compare",  "export", "guide", "schema",  "worker", "import"}) {
    EXPECT_EQ(fuseline(std::string(verb) + " --help").exitCode, 0) << verb;
    EXPECT_EQ(schemaOf(verb)["title"], "fuseline " + std::string(verb) + " --json");
  }
}

TEST(JsonOutput, OfInferHasTheKnownNumbers) {
  const Json json = fuseline("infer --json --device reference " + samplePipeline()).json();
  // x: 4 * 8 bf16 = 64 bytes. fc1.linear: 2 * M * H * 2H = 1024 FLOP forward, twice that backward.
  EXPECT_EQ(json["edges"][0]["bytes"], 64);
  for (const Json& op : json["ops"])
    if (op["id"] == "fc1.linear") {
      EXPECT_EQ(op["flopsForward"], 1024);
      EXPECT_EQ(op["flopsBackward"], 2048);
    }
}

}  // namespace
}  // namespace fuseline::testing
