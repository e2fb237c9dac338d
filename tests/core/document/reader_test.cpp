// Bad texts: every problem with its line, column and pointer; nothing the reader does not know is lost.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "tests/support/example_texts.h"

#include <limits>

namespace fuseline::testing {
namespace {

std::string firstProblem(const std::string& text) {
  const std::vector<Diagnostic> found = parseDocument(text).diagnostics;
  return found.empty() ? "" : toString(found.front(), "f");
}

TEST(Reader, LocatesASyntaxErrorAndNamesTheExpectedToken) {
  EXPECT_EQ(firstProblem("{\n  \"format\": \"a\"\n  \"b\": 1}"),
            "f:3:5: error: The text is not valid JSON: unexpected string literal; expected '}'. [syntax]");
  EXPECT_EQ(firstProblem("{\"a\": [1, 2}"),
            "f:1:12: error: The text is not valid JSON: unexpected '}'; expected ']'. [syntax]");
  EXPECT_EQ(firstProblem("{\"a\": 1} x"),
            "f:1:10: error: The text is not valid JSON: invalid literal; expected end of input. [syntax]");
}

TEST(Reader, SaysThatATruncatedFileEnds) {
  EXPECT_EQ(firstProblem("{\"a\":\n [1,"),
            "f:2:5: error: The text is not valid JSON: unexpected end of input; expected '[', '{', or a literal. "
            "[syntax]");
  EXPECT_EQ(firstProblem(""),
            "f:1:1: error: The text is not valid JSON: unexpected end of input; expected '[', '{', or a literal. "
            "[syntax]");
}

TEST(Reader, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(firstProblem("{\"a\":\n  NaN}"),
            "f:2:3: error: NaN and infinity are not JSON numbers; expected a finite number. [syntax]");
  EXPECT_EQ(firstProblem("{\"a\": -Infinity}"),
            "f:1:7: error: NaN and infinity are not JSON numbers; expected a finite number. [syntax]");
  EXPECT_EQ(firstProblem("{\"a\": 1e999}"),
            "f:1:7: error: The number exceeds the range of 64-bit floating point. [number-overflow]");
}

TEST(Reader, RefusesInvalidUtf8WithoutRepeatingIt) {
  const LoadedDocument loaded = parseDocument("{\"a\": \"\xC3\x28\"}");
  ASSERT_EQ(codes(loaded.diagnostics), std::vector<std::string>{"syntax"});
  EXPECT_EQ(loaded.diagnostics[0].message, "The text is not valid JSON: invalid string: ill-formed UTF-8 byte.");
}

TEST(Reader, BoundsTheDepth) {
  const std::string deep(100000, '[');
  EXPECT_EQ(firstProblem(deep), "f:1:65: error: Values are nested more than 64 levels deep. [too-deep]");
}

TEST(Reader, BoundsTheSize) {
  const std::string huge((std::size_t{64} << 20U) + 1, ' ');
  EXPECT_EQ(
      firstProblem(huge),
      "f:1:1: error: The file has 67108865 bytes, but a pipeline file may have at most 67108864 (64 MiB). [too-large]");
}

TEST(Reader, GivesAnEmptyDocumentForAMalformedFile) {
  EXPECT_EQ(parseDocument("{").document, PipelineDocument());
  EXPECT_EQ(parseDocument("[]").document, PipelineDocument());
  EXPECT_EQ(firstProblem("[]"), "f:1:1: error: Expected a JSON object, found a list. [wrong-type]");
}

TEST(Reader, RefusesFilesOfOtherKinds) {
  for (const char* text : {"{", "[]", "7", "{\"name\": \"another\", \"version\": \"1.0\"}"})
    EXPECT_TRUE(parseDocument(text).isUnreadable) << text;
  const LoadedDocument partly = parseDocument(R"({"format": "fuseline-pipeline", "pipeline": {"ops": [7]}})");
  EXPECT_TRUE(hasErrors(partly.diagnostics));
  EXPECT_FALSE(partly.isUnreadable);
}

std::vector<std::string> unknownFields(const std::string& text) {
  std::vector<std::string> messages;
  for (const Diagnostic& each : parseDocument(text).diagnostics)
    if (each.code == "unknown-field") messages.push_back(each.pointer + ": " + each.message);
  return messages;
}

TEST(Reader, WarnsOfMisspeltFieldsAndKeepsThem) {
  const std::string text = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "recipie": {"name": "None"}, "symbolz": {}, "pipeline": {"inputs": [], "ops": [{"id": "a", "op": "GELU", "bypased": true}]}})";
  EXPECT_EQ(unknownFields(text),
            (std::vector<std::string>{
                "/recipie: \"recipie\" is not a field of this object and has no effect. Did you mean \"recipe\"?",
                "/symbolz: \"symbolz\" is not a field of this object and has no effect. Did you mean \"symbols\"?",
                "/pipeline/ops/0/bypased: \"bypased\" is not a field of this object and has no effect. Did you mean "
                "\"bypassed\"?"}));
  EXPECT_NE(serialize(parseDocument(text).document).find("bypased"), std::string::npos);
}

TEST(Reader, WarnsOfFieldsOfTheFileWithinThePipeline) {
  EXPECT_EQ(unknownFields(R"({"format": "fuseline-pipeline", "pipeline": {"ops": [], "recipe": {"name": "None"}}})"),
            std::vector<std::string>{"/pipeline/recipe: \"recipe\" is not a field of this object and has no effect. "
                                     "\"recipe\" belongs in the outermost object of the file."});
}

// Files of later versions, and notes of other programs, are not errors.
TEST(Reader, KeepsOtherFieldsWithoutAWord) {
  EXPECT_TRUE(unknownFields(R"({"format": "fuseline-pipeline", "author": "me", "x-notes": [],
    "pipeline": {"ops": [{"id": "a", "op": "GELU", "note": "why", "tag": 3}], "name": "mlp"}})")
                  .empty());
}

TEST(Reader, ReportsBothPlacesOfADuplicateKey) {
  const std::string text = fileWith(
      "{\"inputs\": [], \"ops\": [{\"id\": \"a\",\n \"op\": \"GELU\",\n  \"op\": \"SwiGLU\"}],"
      " \"wires\": [], \"outputs\": []}");
  const LoadedDocument loaded = parseDocument(text);
  ASSERT_EQ(listed(loaded.diagnostics),
            "file:5:3: error: The key \"op\" occurs twice in one object, first in line 4, column 2. The second value "
            "\"SwiGLU\" is ignored. [duplicate-key at /pipeline/ops/0/op]\n");
  EXPECT_EQ(loaded.document.ops().at(0).operation, "GELU");
}

TEST(Reader, FindsDuplicateKeysInPartsItDoesNotKnow) {
  EXPECT_EQ(codes(parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {}, "mine": [{"a": {"b": 1, "b": 2}}], "recipe": {"name": "x", "name": "y"}})")
                      .diagnostics),
            (std::vector<std::string>{"duplicate-key", "duplicate-key"}));
}

TEST(Reader, CountsColumnsAfterAByteOrderMark) {
  const LoadedDocument loaded = parseDocument("\xEF\xBB\xBF{\"format\": 5}");
  ASSERT_GE(loaded.diagnostics.size(), 2U);
  EXPECT_EQ(loaded.diagnostics[0].code, "byte-order-mark");
  EXPECT_EQ(loaded.diagnostics[1].code, "wrong-format");
  EXPECT_EQ(loaded.diagnostics[1].column, 15);
}

TEST(Reader, KnowsARunWhenItSeesOne) {
  const LoadedDocument loaded = parseDocument(R"({"format": "fuseline-run"})");
  ASSERT_FALSE(loaded.diagnostics.empty());
  EXPECT_EQ(loaded.diagnostics[0].code, "wrong-format");
  EXPECT_TRUE(loaded.diagnostics[0].message.starts_with("The file is a measured run, not a pipeline"));
}

TEST(Reader, ReportsEveryWrongTypeAtOnce) {
  const std::string text = R"({
  "format": "fuseline-pipeline",
  "formatVersion": {"major": "one", "minor": 0},
  "symbols": [],
  "pipeline": {
    "inputs": {},
    "ops": [7, {"id": 5, "op": [], "attributes": "none"}],
    "wires": [["a"], "b", [1, 2]],
    "outputs": [{"id": "y", "from": 3}]
  },
  "view": {"positions": {"a": [1.5, 2]}}
})";
  EXPECT_EQ(
      listed(parseDocument(text).diagnostics),
      R"(file:3:30: error: "major" is "one" (text); expected a version number. [wrong-type at /formatVersion/major]
file:4:14: error: "symbols" is [] (a list); expected an object. [wrong-type at /symbols]
file:6:15: error: "inputs" is {...} (an object); expected a list. [wrong-type at /pipeline/inputs]
file:7:13: error: Expected an op (an object), found 7. [wrong-type at /pipeline/ops/0]
file:7:23: error: "id" is 5 (an integer); expected text. [wrong-type at /pipeline/ops/1/id]
file:7:32: error: "op" is [] (a list); expected text. [wrong-type at /pipeline/ops/1/op]
file:7:50: error: "attributes" is "none" (text); expected an object. [wrong-type at /pipeline/ops/1/attributes]
file:8:15: error: A wire is [...]; expected a pair of texts such as ["norm.y", "fc1.x"]. It is ignored. [wrong-type at /pipeline/wires/0]
file:8:22: error: A wire is "b"; expected a pair of texts such as ["norm.y", "fc1.x"]. It is ignored. [wrong-type at /pipeline/wires/1]
file:8:27: error: A wire is [...]; expected a pair of texts such as ["norm.y", "fc1.x"]. It is ignored. [wrong-type at /pipeline/wires/2]
file:9:37: error: "from" is 3 (an integer); expected text. [wrong-type at /pipeline/outputs/0/from]
file:11:31: warning: "a" is [...] (a list); expected two integers. [wrong-type at /view/positions/a]
)");
}

TEST(Reader, WritesBackValuesOfTheWrongType) {
  const std::string text = R"({
  "$schema": "fuseline-pipeline-1.json",
  "format": "fuseline-pipeline",
  "formatVersion": {"major": 1, "minor": 0},
  "symbols": {"N": null},
  "pipeline": {
    "inputs": {},
    "ops": [
      7,
      {"id": 5, "op": [], "attributes": "none"}
    ],
    "wires": [],
    "outputs": [{"id": "y", "from": 3}]
  },
  "view": {"positions": {"a": [1.5, 2]}}
}
)";
  EXPECT_EQ(serialize(parseDocument(text).document), text);
}

TEST(Reader, KeepsUnknownFieldsOfEveryObject) {
  const std::string text = R"({
  "$schema": "https://example.org/fuseline-pipeline-1.json",
  "format": "fuseline-pipeline",
  "formatVersion": {"major": 1, "minor": 0, "draft": true},
  "symbols": {"M": 8},
  "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", 16], "requires_grad": false, "note": "n"}],
    "ops": [
      {"id": "a", "op": "Teleport", "attributes": {"speed": 1.0}, "color": [1, 2.5, null]}
    ],
    "wires": [["x", "a.x"]],
    "outputs": [{"id": "y", "from": "a.y", "unit": {"name": "m"}}],
    "groups": []
  },
  "recipe": {"name": "DelayedScaling", "margin": 0},
  "fusion": {"rules": "te", "without": ["Rule@a"]},
  "view": {"positions": {"a": [-5, 0]}, "zoom": 1.5},
  "extensions": {"org.example": {"deep": [[{"a~b/c": "\u00e4\"\n"}]]}}
}
)";
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_EQ(listed(loaded.diagnostics), "");
  std::string expected = text;
  expected.replace(expected.find("\\u00e4"), 6, "\xC3\xA4");
  EXPECT_EQ(serialize(loaded.document), expected);
  EXPECT_EQ(loaded.document.inputs().at(0).requiresGradient, false);
}

TEST(Reader, WarnsAboutANewerMinorVersionAndKeepsIt) {
  const LoadedDocument loaded =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 7}, "pipeline": {}})");
  EXPECT_EQ(listed(loaded.diagnostics),
            "file:1:50: warning: The file has format version 1.7; this program supports 1.6. Unknown parts are kept "
            "and written back. [newer-minor at /formatVersion]\n");
  EXPECT_NE(serialize(loaded.document).find("\"minor\": 7"), std::string::npos);
  EXPECT_FALSE(loaded.document.isReadOnly());
}

TEST(Reader, OpensANewerMajorVersionReadOnly) {
  LoadedDocument loaded =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 2, "minor": 1}, "pipeline": {}})");
  ASSERT_EQ(codes(loaded.diagnostics), std::vector<std::string>{"newer-major"});
  EXPECT_TRUE(hasErrors(loaded.diagnostics));
  EXPECT_TRUE(loaded.document.isReadOnly());
  const Result<Edit> edited = applyEdit(loaded.document, AddOp{{.id = "a", .operation = "GELU"}});
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("newer major version"), std::string::npos);
  EXPECT_FALSE(saveDocument(loaded.document, std::filesystem::temp_directory_path() / "never.fuseline"));
  EXPECT_NE(serialize(loaded.document).find("\"major\": 2"), std::string::npos);
}

TEST(Reader, RefusesRequiredExtensions) {
  const std::string text =
      R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, )"
      R"("extensionsRequired": ["org.example.sparsity"], "extensions": {"org.example.sparsity": 1}, )"
      R"("pipeline": {}})";
  LoadedDocument loaded = parseDocument(text);
  ASSERT_EQ(codes(loaded.diagnostics), std::vector<std::string>{"required-extension"});
  EXPECT_NE(loaded.diagnostics.front().message.find("org.example.sparsity"), std::string::npos);
  EXPECT_NE(serialize(loaded.document).find("extensionsRequired"), std::string::npos);
  EXPECT_TRUE(codes(parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, )"
                                  R"("extensionsRequired": [], "pipeline": {}})")
                        .diagnostics)
                  .empty());
}

TEST(Reader, MissesTheHeader) {
  EXPECT_EQ(listed(parseDocument("{}").diagnostics),
            "file:1:1: error: The file has no \"format\"; expected \"format\": \"fuseline-pipeline\". "
            "[wrong-format]\nfile:1:1: warning: The file has no \"formatVersion\"; reading it as 1.6. "
            "[missing-field]\nfile:1:1: error: The file has no \"pipeline\". [missing-field]\n");
}

TEST(Reader, SeparatesManyMembersOnTheirOwnLines) {
  const LoadedDocument loaded = parseDocument(pipelineText(
      R"({"id": "a_rather_long_name_of_an_op", "op": "RMSNorm", "attributes": {"normalized_shape": ["H"], "eps": 1e-05, "zero_centered_gamma": false}})",
      R"(["x", "a_rather_long_name_of_an_op.x"])", "a_rather_long_name_of_an_op.y"));
  EXPECT_NE(serialize(loaded.document).find(R"(
      {
        "id": "a_rather_long_name_of_an_op",
        "op": "RMSNorm",
        "attributes": {"normalized_shape": ["H"], "eps": 1e-05, "zero_centered_gamma": false}
      }
)"),
            std::string::npos)
      << serialize(loaded.document);
}

TEST(Reader, KeepsNumbersAsTheyAre) {
  const std::string numbers = "[0, -1, 9223372036854775807, 18446744073709551615, 1.0, -0.0, 0.1, 1e-05, 1e+300, 2.5]";
  const LoadedDocument loaded = parseDocument(
      R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {}, "n": )" + numbers +
      "}");
  EXPECT_NE(serialize(loaded.document).find(numbers), std::string::npos) << serialize(loaded.document);
}

TEST(ReadDocument, TakesValuesThatNoTextCouldHold) {
  Json file = toJson(parseDocument(documentTemplates().front().text).document);
  file["recipe"] = {{"name", "a\xFF"}, {"margin", std::numeric_limits<double>::quiet_NaN()}};
  const LoadedDocument loaded = readDocument(file);
  EXPECT_FALSE(loaded.isUnreadable);
  EXPECT_EQ(toJson(loaded.document)["recipe"], Json({{"name", "a\uFFFD"}, {"margin", nullptr}}));
}

TEST(ReadDocument, RefusesEndlessNesting) {
  Json deep;
  for (int level = 0; level < 1000; ++level) deep = Json::array({std::move(deep)});
  const LoadedDocument loaded = readDocument({{"pipeline", std::move(deep)}});
  EXPECT_TRUE(loaded.isUnreadable);
  EXPECT_EQ(loaded.diagnostics.at(0).code, "too-deep");
}

TEST(SourceMap, FallsBackToTheEnclosingValue) {
  const LoadedDocument loaded = parseDocument(
      pipelineText("\n {\"id\": \"a\",\n  \"op\": \"Bias\", \"attributes\": {\"size\": \"H\"}}", "", "a.y"));
  const auto at = [&](const char* pointer) {
    const SourceMap::Place place = loaded.sourceMap.find(pointer);
    return std::pair(place.line, place.column);
  };
  EXPECT_EQ(at("/pipeline/ops/0"), std::pair(5, 2));
  EXPECT_EQ(at("/pipeline/ops/0/attributes/size"), std::pair(6, 40));
  EXPECT_EQ(at("/pipeline/ops/0/attributes/absent/0"), std::pair(6, 31));
  EXPECT_EQ(at("/nowhere"), std::pair(1, 1));
}

TEST(Files, SayWhyTheyCannotBeRead) {
  const Result<LoadedDocument> missing = loadDocument("/nonexistent/a.fuseline");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "Cannot read /nonexistent/a.fuseline: No such file or directory.");
  const Result<LoadedDocument> folder = loadDocument("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "Cannot read /: expected a pipeline file, found a folder.");
}

TEST(Files, AreReadBackAsTheyWereSaved) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "saved.fuseline";
  const PipelineDocument document = parseDocument(documentTemplates().front().text).document;
  ASSERT_TRUE(saveDocument(document, path));
  const Result<LoadedDocument> loaded = loadDocument(path);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->document, document);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fuseline::testing
