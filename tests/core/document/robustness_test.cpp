// Hostile and very large files.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/json_text.h"
#include "core/edit/apply_edit.h"
#include "tests/support/example_texts.h"

#include <rapidcheck.h>

#include <fmt/format.h>

namespace fuseline::testing {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const auto& path : exampleFiles()) texts.push_back(readFile(path));
  PipelineDocument framed = parseDocument(texts.front()).document;
  (void)applyEdit(framed,
                  AddFrame{{.id = "a", .title = "A title", .area = FrameArea{-8, 0, 400, 200}, .color = "blue"}});
  (void)applyEdit(framed,
                  AddFrame{{.id = "b", .text = "two\nlines", .area = FrameArea{0, 300, 80, 40}, .locked = true}});
  texts.push_back(serialize(framed));
  return texts;
}

std::string mutated(std::string text) {
  static const std::vector<std::string> tokens = {
      "{",          "}",   "[",    "]",      ",",   ":", "\"", "null", "-1", "1e400", "\\u0000", "99999999999999999999",
      "\"id\": 3,", "0.5", "\xFF", "\"y.\"", "true"};
  const int numChanges = *rc::gen::inRange(1, 6);
  for (int i = 0; i < numChanges && !text.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 5)) {
      case 0: text[at] = *rc::gen::arbitrary<char>(); break;
      case 1: text.erase(at, *rc::gen::inRange<std::size_t>(1, 12)); break;
      case 2: text.insert(at, *rc::gen::elementOf(tokens)); break;
      case 3: text.insert(at, text.substr(at, *rc::gen::inRange<std::size_t>(1, 60))); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

void checkThatItIsHandled(const std::string& text) {
  const LoadedDocument loaded = parseDocument(text);
  const LoweredGraph lowered = lower(loaded.document, {}, &loaded.sourceMap);
  RC_ASSERT(hasErrors(loaded.diagnostics) || !(loaded.document == PipelineDocument()));
  for (const auto* list : {&loaded.diagnostics, &lowered.diagnostics})
    for (const Diagnostic& diagnostic : *list) {
      RC_ASSERT(!diagnostic.code.empty());
      RC_ASSERT(!diagnostic.message.empty());
      RC_ASSERT(isUtf8(diagnostic.message));
      RC_ASSERT(diagnostic.line >= 1);
      RC_ASSERT(diagnostic.column >= 1);
    }
  const std::string saved = serialize(loaded.document);
  RC_ASSERT(serialize(parseDocument(saved).document) == saved);
  RC_ASSERT(serialize(readDocument(toJson(loaded.document)).document) == saved);
}

TEST(Robustness, MutatedFilesGiveADocumentOrAnError) {
  const std::vector<std::string> texts = seeds();
  EXPECT_TRUE(rc::check([&] { checkThatItIsHandled(mutated(*rc::gen::elementOf(texts))); }));
}

TEST(Robustness, EveryRepairOfAMutatedFileApplies) {
  const std::vector<std::string> texts = seeds();
  EXPECT_TRUE(rc::check([&] {
    const PipelineDocument document = parseDocument(mutated(*rc::gen::elementOf(texts))).document;
    if (document.isReadOnly()) return;
    for (const Diagnostic& diagnostic : lower(document).diagnostics)
      for (const Repair& repair : diagnostic.repairs) {
        PipelineDocument repaired = document;
        RC_ASSERT(applyEdit(repaired, repair.edit).hasValue());
      }
  }));
}

TEST(Robustness, EveryTruncationOfAnExampleIsASyntaxError) {
  const std::string text = readFile(examplesFolder() / "llama_mlp.fuseline");
  const std::size_t end = text.rfind('}');
  for (std::size_t length = 0; length <= end; ++length)
    ASSERT_EQ(codes(problems(text.substr(0, length))), std::vector<std::string>{"syntax"}) << length;
}

std::string longChain(int numOps, const std::string& operation) {
  std::string ops;
  std::string wires;
  for (int i = 0; i < numOps; ++i) {
    ops +=
        fmt::format("{}{{\"id\": \"op{}\", \"op\": \"{}\", \"attributes\": {{}}}}", i == 0 ? "" : ",\n", i, operation);
    wires += fmt::format("{}[\"{}\", \"op{}.x\"]", i == 0 ? "" : ", ", i == 0 ? "x" : fmt::format("op{}.y", i - 1), i);
  }
  return pipelineText(ops, wires, fmt::format("op{}.y", numOps - 1));
}

// These finish in seconds only if nothing is quadratic; the time itself is not asserted.
constexpr int kManyOps = 100'000;

TEST(ManyOps, AreReadLoweredAndWritten) {
  LoadedDocument loaded = parseDocument(longChain(kManyOps, "GELU"));
  EXPECT_TRUE(loaded.diagnostics.empty());
  const LoweredGraph lowered = lower(loaded.document, {}, &loaded.sourceMap);
  EXPECT_TRUE(lowered.diagnostics.empty());
  EXPECT_EQ(lowered.graph.nodes().size(), static_cast<std::size_t>(kManyOps));
  EXPECT_EQ(parseDocument(serialize(loaded.document)).document, loaded.document);
}

TEST(ManyOps, ThatAreAllUnknownAreAllReported) {
  const std::vector<Diagnostic> found = problems(longChain(kManyOps, "GLUE"));
  EXPECT_EQ(std::ranges::count(found, "unknown-op", &Diagnostic::code), kManyOps);
}

TEST(ManyOps, WithOneIdAreAllReported) {
  std::string ops = "{\"id\": \"a\", \"op\": \"GELU\"}";
  for (int i = 1; i < kManyOps; ++i) ops += ",{\"id\": \"a\", \"op\": \"GELU\"}";
  const std::vector<Diagnostic> found = problems(pipelineText(ops, R"(["x", "a.x"])", "a.y"));
  EXPECT_EQ(std::ranges::count(found, "duplicate-id", &Diagnostic::code), kManyOps - 1);
}

TEST(ManyOps, InManyCyclesAreAllReported) {
  std::string ops = "{\"id\": \"o\", \"op\": \"GELU\"}";
  std::string wires = R"(["x", "o.x"])";
  for (int i = 0; i < kManyOps / 2; ++i) {
    ops += fmt::format(",{{\"id\": \"a{0}\", \"op\": \"GELU\"}},{{\"id\": \"b{0}\", \"op\": \"GELU\"}}", i);
    wires += fmt::format(",[\"a{0}.y\", \"b{0}.x\"],[\"b{0}.y\", \"a{0}.x\"]", i);
  }
  const std::vector<Diagnostic> found = problems(pipelineText(ops, wires, "o.y"));
  EXPECT_EQ(std::ranges::count(found, "cycle", &Diagnostic::code), kManyOps / 2);
}

TEST(ManySymbols, InALongChainAreEvaluated) {
  std::string symbols = "\"s0\": 1";
  for (int i = 1; i < kManyOps; ++i) symbols += fmt::format(", \"s{}\": \"s{} + 1\"", i, i - 1);
  const std::string text =
      R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {)" + symbols +
      fmt::format(R"(}}, "pipeline": {{"inputs": [{{"id": "x", "dtype": "f32",
    "shape": ["s{}"]}}], "ops": [{{"id": "a", "op": "GELU"}}], "wires": [["x", "a.x"]],
    "outputs": [{{"id": "y", "from": "a.y"}}]}}}})",
                  kManyOps - 1);
  const LoweredGraph lowered = lower(parseDocument(text).document);
  ASSERT_EQ(listed(lowered.diagnostics), "");
  EXPECT_EQ(lowered.graph.values().front().spec.shape, Shape{kManyOps});
}

}  // namespace
}  // namespace fuseline::testing
