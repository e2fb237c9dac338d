// Embedding, tied head and loss in exported files.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/export/pipeline_exporter.h"

#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// Tokens, positions, a tied head and the loss.
std::string modelWith(const char* loss) {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "pipeline": {{
    "inputs": [{{"id": "ids", "dtype": "i64", "shape": [2, 5]}}, {{"id": "labels", "dtype": "i64", "shape": [2, 5]}}],
    "ops": [{{"id": "embed", "op": "Embedding", "attributes": {{"num_embeddings": 9, "embedding_dim": 8, "dtype": "bf16",
                                                              "shares_weight": true}}}},
            {{"id": "places", "op": "Embedding", "attributes": {{"num_embeddings": 6, "embedding_dim": 8,
                                                               "dtype": "bf16", "positions": true}}}},
            {{"id": "add", "op": "AddExtraInput", "attributes": {{}}}},
            {{"id": "head", "op": "TiedLinear", "attributes": {{}}}},
            {{"id": "loss", "op": "CrossEntropy", "attributes": {{{}}}}}],
    "wires": [["ids", "embed.x"], ["ids", "places.x"], ["embed.y", "add.x"], ["places.y", "add.extra"],
              ["add.y", "head.x"], ["embed.weight", "head.weight"], ["head.y", "loss.x"], ["labels", "loss.target"]],
    "outputs": [{{"id": "y", "from": "loss.y"}}]}}}})",
                     loss);
}

std::string inPython(const char* loss, const char* format = "te") {
  const LoadedDocument loaded = parseDocument(modelWith(loss));
  const AnalysisOptions options;
  const Analysis analysis = analyze(loaded.document, options);
  if (hasErrors(analysis.lowered.diagnostics)) throw std::invalid_argument(analysis.lowered.diagnostics[0].message);
  const Result<PipelineText> text = findPipelineExporter(format)->write(
      {.name = "sample", .document = loaded.document, .options = options, .analysis = analysis});
  if (!text) throw std::runtime_error(text.error().message);
  return text->text;
}

TEST(ModelEnds, AreFunctionsOfPyTorch) {
  const std::string text = inPython(R"("label_smoothing": 0.1, "lse_square_scale": 0.01)");
  for (const char* const part :
       {"weight = torch.empty(9, 8, dtype=torch.bfloat16, device=device)",
        "y = torch.nn.functional.embedding(x, self.weight)", "return y, self.weight",
        "x = torch.arange(x.shape[-1], device=x.device).expand(x.shape)",
        "return torch.nn.functional.linear(x, weight)", "rows, labels, ignore_index=-100, reduction=\"mean\"",
        "label_smoothing=0.1", "z = 0.01 * torch.logsumexp(rows, -1).square() * counts"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  for (const char* const part : {"te.ops.Embedding", "te.ops.TiedLinear", "te.ops.CrossEntropy"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
}

TEST(ModelEnds, AreModulesOfPyTorchAlone) {
  const std::string text = inPython("", "torch");
  for (const char* const part :
       {"self.embed = Embedding(device)", "self.places = Embedding2(device)", "add_y = embed_y + places_y",
        "\"embed.weight\": \"embed.weight\"", "\"ids\": ([2, 5], torch.int64, False, 6)", "WEIGHTS = []"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("transformer_engine"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
