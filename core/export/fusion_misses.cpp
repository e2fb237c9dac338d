// Plans the pipeline of a run again and keeps the fusions that did not apply.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/fusion_misses.h"

#include "core/fusion/rule_uses.h"
#include "core/plan/analysis.h"
#include "core/runtime/measured_pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string opsOf(const Graph& graph, const Attempt& attempt) {
  std::vector<std::string> ids;
  for (const NodeId id : attempt.nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}", fmt::join(ids, " + "));
}

FusionMiss missOf(const Analysis& analysis, const Attempt& attempt) {
  FusionMiss miss{.rule = attempt.rule->name,
                  .pass = std::string(passName(attempt.rule->pass)),
                  .outcome = std::string(outcomeName(attempt.outcome)),
                  .ops = opsOf(analysis.graph(), attempt),
                  .explanation = attempt.explanation};
  for (const Repair& repair : attempt.repairs) miss.fixes.push_back(repair.label);
  if (const std::string request = requestFor(analysis.graph(), attempt); !request.empty())
    miss.fixes.push_back("ask for it with --with " + request);
  if (attempt.saving && *attempt.saving != Saving{})
    miss.gain = gainText(*attempt.saving, attempt.measured.get(), analysis.report.device);
  return miss;
}

Analysis plannedAgain(const RunRecord& record, const MeasuredPipeline& measured) {
  AnalysisOptions options;
  options.lowering.pass = measured.pass;
  options.capability = parseCapability(record.fact("architecture"));
  return analyze(measured.document, options);
}

}  // namespace

FusionMisses fusionMissesOf(const RunRecord& record) {
  const Result<MeasuredPipeline> measured = measuredPipeline(record);
  if (!measured) return {.unknown = measured.error().message};
  const Analysis analysis = plannedAgain(record, *measured);
  if (!analysis.isRunnable()) return {.unknown = "The pipeline in this run has errors in this version."};
  FusionMisses found{.differing = differingSteps(record, analysis)};
  for (const Attempt& attempt : analysis.report.attempts) {
    if (attempt.outcome == Outcome::Fused) continue;
    if (isDistant(attempt))
      ++found.numDistant;
    else
      found.misses.push_back(missOf(analysis, attempt));
  }
  return found;
}

}  // namespace fuseline
