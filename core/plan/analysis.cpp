// Document to plan in one call.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/analysis.h"

namespace fuseline {

namespace {

RuleBook documentBook(const Json& fusion) {
  const bool isTe = fusion.is_object() && fusion.contains("rules") && fusion["rules"] == "te";
  return isTe ? RuleBook::Te : RuleBook::All;
}

void appendDocumentSwitches(const Json& fusion, std::vector<std::string>& without) {
  if (!fusion.is_object() || !fusion.contains("without") || !fusion["without"].is_array()) return;
  for (const Json& entry : fusion["without"])
    if (entry.is_string()) without.push_back(entry.get<std::string>());
}

FusionOptions fusionOptions(const PipelineDocument& document, const AnalysisOptions& options) {
  FusionOptions fusion{.book = options.book.value_or(documentBook(document.fusion())),
                       .without = options.without,
                       .capabilities = options.capabilities};
  appendDocumentSwitches(document.fusion(), fusion.without);
  return fusion;
}

}  // namespace

Analysis analyze(const PipelineDocument& document, const AnalysisOptions& options, const SourceMap* sourceMap) {
  Analysis analysis{.lowered = lower(document, options.lowering, sourceMap)};
  const Graph& graph = analysis.graph();
  FusionOptions fusion = fusionOptions(document, options);
  Result<FusionReport> report = fuse(graph, fusion);
  if (!report) {
    analysis.lowered.diagnostics.push_back(
        {.code = "unknown-rule", .pointer = "/fusion/without", .message = report.error().message});
    fusion.without.clear();
    report = fuse(graph, fusion);
  }
  analysis.report = std::move(*report);
  if (hasErrors(analysis.lowered.diagnostics)) return analysis;
  analysis.unfusedPlan = makePlan(graph, unfused(graph));
  analysis.fusedPlan = makePlan(graph, analysis.report);
  return analysis;
}

}  // namespace fuseline
