// A recipe that asks for quantized attention is told that there is none.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/plan/analysis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

std::vector<Diagnostic> notesOf(const char* fields) {
  const LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
           "recipe": {{"name": "Float8CurrentScaling"{}}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [64, 2, 64]}}],
             "ops": [{{"id": "attn", "op": "DotProductAttention", "attributes": {{"num_attention_heads": 4,
               "kv_channels": [16]}}}}],
             "wires": [["x", "attn.x"], ["x", "attn.k"], ["x", "attn.v"]],
             "outputs": [{{"id": "y", "from": "attn.y"}}]}}}})",
      fields));
  std::vector<Diagnostic> notes;
  for (const Diagnostic& diagnostic : analyze(loaded.document).lowered.diagnostics)
    if (diagnostic.code == "recipe-attention") notes.push_back(diagnostic);
  return notes;
}

TEST(AttentionRecipe, SaysThatAttentionStaysInHighPrecision) {
  const std::vector<Diagnostic> notes = notesOf(R"(, "fp8_dpa": true)");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().node, "attn");
  EXPECT_NE(notes.front().message.find("attention computes in bf16"), std::string::npos) << notes.front().message;
}

TEST(AttentionRecipe, SaysNothingWithoutTheField) { EXPECT_TRUE(notesOf("").empty()); }

}  // namespace
}  // namespace fuseline
