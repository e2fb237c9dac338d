// Compares the fused plan with the unfused one: each fused op with its basic ops below it.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/roofline.h"
#include "core/profile/run_record.h"
#include "core/profile/step_sums.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace fuseline {

namespace {

std::int64_t totalBytes(const Steps& steps) {
  std::int64_t bytes = 0;
  for (const StepRecord* step : steps) bytes += step->bytes;
  return bytes;
}

std::int64_t numLaunches(const Steps& steps) {
  std::int64_t launches = 0;
  for (const StepRecord* step : steps) launches += step->isView ? 0 : step->launches;
  return launches;
}

bool isFused(const StepRecord& step) { return !step.rule.empty() || !step.absorbs.empty(); }

/// Whether the unfused plan has the step, too, with nothing that a fusion put into it or took out.
bool isTheOnly(const Steps& parts, const StepRecord& step) {
  if (parts.size() != 1 || isFused(step)) return false;
  const StepRecord& part = *parts.front();
  return part.name == step.name && part.kernel == step.kernel && part.bytes == step.bytes && part.flops == step.flops;
}

ComparisonRow rowFor(const StepRecord& step, int depth) {
  return {.label = step.name,
          .phase = step.phase,
          .depth = depth,
          .owners = step.owners,
          .isFused = isFused(step),
          .isView = step.isView,
          .note = step.note};
}

/// Efficiency of each variant that ran.
struct Rooflines {
  std::optional<Roofline> unfused;
  std::optional<Roofline> fused;
};

void measureUnfused(ComparisonRow& row, const Steps& steps, const Rooflines& rooflines) {
  row.unfused = summarize(sumPerRound(steps));
  if (rooflines.unfused) row.unfusedEfficiency = rooflines.unfused->of(steps);
}

void measureFused(ComparisonRow& row, const Steps& steps, const Rooflines& rooflines) {
  row.fused = summarize(sumPerRound(steps));
  if (rooflines.fused) row.fusedEfficiency = rooflines.fused->of(steps);
}

/// Fills times, speed-up and savings from the steps of either side.
void measure(ComparisonRow& row, const Steps& unfused, const Steps& fused, const Rooflines& rooflines) {
  measureUnfused(row, unfused, rooflines);
  measureFused(row, fused, rooflines);
  if (unfused.empty() || fused.empty()) return;
  row.speedup = compareRounds(sumPerRound(unfused), sumPerRound(fused));
  row.bytesSaved = totalBytes(unfused) - totalBytes(fused);
  row.launchesSaved = numLaunches(unfused) - numLaunches(fused);
}

/// The name of a step that is one of several pieces, without its number: "fc1 [2/4]".
std::string_view wholeName(const StepRecord& step) {
  const std::string_view name = step.name;
  return name.substr(0, name.ends_with(']') ? name.rfind(" [") : name.size());
}

/// A fused step that is cut into pieces replaces its ops once.
Steps piecesOf(const VariantRecord& fused, const StepRecord& first) {
  Steps pieces = {&first};
  if (!isFused(first) || wholeName(first) == first.name) return pieces;
  for (const StepRecord& step : fused.steps)
    if (&step > &first && step.rule == first.rule && step.phase == first.phase && wholeName(step) == wholeName(first))
      pieces.push_back(&step);
  return pieces;
}

void appendEntry(std::vector<ComparisonRow>& rows, const Steps& pieces, const Steps& parts,
                 const Rooflines& rooflines) {
  const StepRecord& step = *pieces.front();
  ComparisonRow& row = rows.emplace_back(rowFor(step, 0));
  if (pieces.size() > 1) row.label = wholeName(step);
  measure(row, parts, pieces, rooflines);
  row.isInBoth = isTheOnly(parts, step);
  if (!isFused(step)) return;
  for (const StepRecord* part : parts) measureUnfused(rows.emplace_back(rowFor(*part, 1)), {part}, rooflines);
}

/// Appends the steps of the unfused plan that no entry of the fused plan replaces, such as a gradient sum that a fusion
/// made superfluous: without them the rows would not add up.
void appendLeftOver(std::vector<ComparisonRow>& rows, const VariantRecord& unfused,
                    const std::set<const StepRecord*>& shown, const Rooflines& rooflines) {
  for (const StepRecord& step : unfused.steps)
    if (!shown.contains(&step)) {
      ComparisonRow& row = rows.emplace_back(rowFor(step, 0));
      measureUnfused(row, {&step}, rooflines);
      row.bytesSaved = step.bytes;
      row.launchesSaved = numLaunches({&step});
    }
}

std::vector<ComparisonRow> fusedRows(const VariantRecord& unfused, const VariantRecord& fused,
                                     const Rooflines& rooflines) {
  std::vector<ComparisonRow> rows;
  std::set<const StepRecord*> shown;
  const StepParts allParts(unfused, fused);
  std::set<const StepRecord*> compared;
  for (const StepRecord& step : fused.steps) {
    if (compared.contains(&step)) continue;
    const Steps parts = allParts.of(step);
    const Steps pieces = piecesOf(fused, step);
    shown.insert(parts.begin(), parts.end());
    compared.insert(pieces.begin(), pieces.end());
    appendEntry(rows, pieces, parts, rooflines);
  }
  appendLeftOver(rows, unfused, shown, rooflines);
  return rows;
}

std::vector<ComparisonRow> singleRows(const VariantRecord& only, const Rooflines& rooflines) {
  std::vector<ComparisonRow> rows;
  for (const StepRecord& step : only.steps) {
    ComparisonRow& row = rows.emplace_back(rowFor(step, 0));
    rooflines.unfused ? measureUnfused(row, {&step}, rooflines) : measureFused(row, {&step}, rooflines);
  }
  return rows;
}

Steps allSteps(const VariantRecord* variant) {
  Steps steps;
  if (!variant) return steps;
  for (const StepRecord& step : variant->steps) steps.push_back(&step);
  return steps;
}

}  // namespace

ComparisonRow compareSamples(const RunRecord& record, std::string label, const SamplesOf& samplesOf) {
  ComparisonRow row{.label = std::move(label)};
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  if (unfused) row.unfused = summarize(samplesOf(*unfused));
  if (fused) row.fused = summarize(samplesOf(*fused));
  if (unfused && fused) row.speedup = compareRounds(samplesOf(*unfused), samplesOf(*fused));
  return row;
}

Comparison compareVariants(const RunRecord& record) {
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  Comparison comparison{.sum = {.label = "sum of steps"},
                        .endToEnd = compareSamples(record, "end to end", &VariantRecord::endToEndNs)};
  Rooflines rooflines;
  if (unfused) rooflines.unfused.emplace(record, *unfused);
  if (fused) rooflines.fused.emplace(record, *fused);
  if (unfused && fused)
    comparison.rows = fusedRows(*unfused, *fused, rooflines);
  else if (unfused || fused)
    comparison.rows = singleRows(unfused ? *unfused : *fused, rooflines);
  measure(comparison.sum, allSteps(unfused), allSteps(fused), rooflines);
  comparison.endToEnd.bytesSaved = comparison.sum.bytesSaved;
  comparison.endToEnd.launchesSaved = comparison.sum.launchesSaved;
  return comparison;
}

}  // namespace fuseline
