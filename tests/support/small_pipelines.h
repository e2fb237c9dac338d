// Texts of small pipelines that tests of edits and of the window begin with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fuseline::testing {

inline constexpr const char* kSmallHead = R"("$schema": "fuseline-pipeline-1.json", "format": "fuseline-pipeline",
  "formatVersion": {"major": 1, "minor": 0}, "symbols": {"M": 16, "H": 32}, )";

inline std::string smallDocument(const std::string& pipeline, const std::string& rules = "all") {
  return "{" + std::string(kSmallHead) + "\"fusion\": {\"rules\": \"" + rules + "\"}, \"pipeline\": {" + pipeline +
         "}}";
}

/// x [16, 32] bf16 -> norm (RMSNorm) -> fc (Linear 32 to 64, no bias) -> act (GELU) -> y.
inline std::string smallPipeline() {
  return smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": ["H"]}},
            {"id": "fc", "op": "Linear", "attributes": {"in_features": "H", "out_features": "2*H", "bias": false}},
            {"id": "act", "op": "GELU", "attributes": {}}],
    "wires": [["x", "norm.x"], ["norm.y", "fc.x"], ["fc.y", "act.x"]],
    "outputs": [{"id": "y", "from": "act.y"}])");
}

/// x -> save (MakeExtraOutput) -> fc (Linear, no bias) -> add (AddExtraInput, in_place as given), save.extra ->
/// add.extra, fused as TransformerEngine does.
inline std::string residualPipeline(bool isInPlace) {
  const std::string inPlace = isInPlace ? "true" : "false";
  return smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "save", "op": "MakeExtraOutput", "attributes": {}},
            {"id": "fc", "op": "Linear", "attributes": {"in_features": "H", "out_features": "H", "bias": false}},
            {"id": "add", "op": "AddExtraInput", "attributes": {"in_place": )" +
                           inPlace + R"(}}],
    "wires": [["x", "save.x"], ["save.y", "fc.x"], ["fc.y", "add.x"], ["save.extra", "add.extra"]],
    "outputs": [{"id": "y", "from": "add.y"}])",
                       "te");
}

}  // namespace fuseline::testing
