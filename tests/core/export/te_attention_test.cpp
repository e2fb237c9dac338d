// Attention in Python: modules of TransformerEngine between two te.ops.Sequential.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/export/te/te_python.h"

#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

std::string opOf(const char* id, const char* operation, const char* attributes) {
  return fmt::format(R"({{"id": "{}", "op": "{}", "attributes": {{{}}}}})", id, operation, attributes);
}

/// A packed projection of 4 heads and 2 groups of 8 channels, rotary embeddings, attention, and a projection.
PipelineText attentionInPython(const char* rotary, const char* attention) {
  const std::string ops = fmt::format(
      "{}, {}, {}, {}, {}, {}", opOf("qkv", "Linear", R"("in_features": 32, "out_features": 64, "bias": false)"),
      opOf("split", "Split", R"("sizes": [32, 16, 16])"), opOf("rope_q", "RotaryPositionEmbedding", rotary),
      opOf("rope_k", "RotaryPositionEmbedding", rotary), opOf("attend", "DotProductAttention", attention),
      opOf("out", "Linear", R"("in_features": 32, "out_features": 32, "bias": false)"));
  const LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "pipeline": {{
      "inputs": [{{"id": "x", "dtype": "bf16", "shape": [16, 2, 32]}}], "ops": [{}],
      "wires": [["x", "qkv.x"], ["qkv.y", "split.x"], ["split.y", "rope_q.x"], ["split.y1", "rope_k.x"],
                ["rope_q.y", "attend.x"], ["rope_k.y", "attend.k"], ["split.y2", "attend.v"], ["attend.y", "out.x"]],
      "outputs": [{{"id": "y", "from": "out.y"}}]}}}})",
      ops));
  const AnalysisOptions options;
  const Analysis analysis = analyze(loaded.document, options);
  if (hasErrors(analysis.lowered.diagnostics)) throw std::invalid_argument(analysis.lowered.diagnostics[0].message);
  Result<PipelineText> text =
      tePython({.name = "sample", .document = loaded.document, .options = options, .analysis = analysis});
  if (!text) throw std::runtime_error(text.error().message);
  return *text;
}

bool has(const PipelineText& text, std::string_view part) { return text.text.find(part) != std::string::npos; }

TEST(TeAttention, IsAModuleOfTransformerEngine) {
  const PipelineText text = attentionInPython(
      R"("dim": 8)",
      R"("num_attention_heads": 4, "num_gqa_groups": 2, "kv_channels": [8], "window_size": [3, 0], "softcap": 2.5)");
  EXPECT_TRUE(has(text, "te.DotProductAttention("));
  for (const char* const argument :
       {"num_attention_heads=4", "kv_channels=8", "num_gqa_groups=2", "qkv_format=\"sbhd\"",
        "attn_mask_type=\"causal\"", "window_size=(3, 0)", "softcap=2.5"})
    EXPECT_TRUE(has(text, argument)) << argument;
  EXPECT_FALSE(has(text, "softmax_scale=")) << "TransformerEngine computes it";
  EXPECT_TRUE(has(text, "self.angles = te.RotaryPositionEmbedding(8, rotary_base=10000.0)"));
  EXPECT_TRUE(has(text, "torch.split(x, [32, 16, 16], dim=-1)"));
  EXPECT_TRUE(has(text, "split_y, split_y1, split_y2 = self.split(qkv_y)"));
  EXPECT_FALSE(has(text, "Placeholder"));
}

TEST(TeAttention, GivesMasksAndBiasesToItsCall) {
  const PipelineText text = attentionInPython(
      R"("dim": 8, "interleaved": true, "rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192)",
      R"("num_attention_heads": 4, "num_gqa_groups": 2, "kv_channels": [8], "core_attention_bias_type": "alibi",
         "softmax_type": "learnable", "softmax_scale": 0.5)");
  EXPECT_TRUE(has(text, "core_attention_bias_type=\"alibi\""));
  EXPECT_TRUE(has(text, "softmax_type=\"learnable\""));
  EXPECT_TRUE(has(text, "softmax_scale=0.5"));
  EXPECT_TRUE(has(text, "\"attend.softmax_offset\": \"attend.softmax_offset\""));
  EXPECT_TRUE(has(text, "angles.repeat_interleave(2, dim=-1)")) << "te.RotaryPositionEmbedding scales no frequencies";
}

}  // namespace
}  // namespace fuseline
