// Repairs are tried on a scratch copy, round by round, because one often uncovers the next.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/fix_all.h"

#include "core/edit/apply_edit.h"
#include "core/edit/edit_script.h"
#include "core/lowering/lowering.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

// A chain of ops without sizes needs a round for each of them.
constexpr int kMostRounds = 64;

/// Returns how many repairs were applied.
std::size_t applyRepairs(EditScript& script, const std::vector<Diagnostic>& problems) {
  std::size_t numApplied = 0;
  for (const Diagnostic& problem : problems) {
    if (!hasOnlyRepair(problem)) continue;
    PipelineDocument trial = script.document();
    if (!applyEdit(trial, problem.repairs.front().edit)) continue;
    script.add(problem.repairs.front().edit);
    ++numApplied;
  }
  return numApplied;
}

std::size_t numErrors(const PipelineDocument& document) {
  return static_cast<std::size_t>(
      std::ranges::count(lower(document).diagnostics, Severity::Error, &Diagnostic::severity));
}

}  // namespace

bool hasOnlyRepair(const Diagnostic& problem) {
  return problem.severity == Severity::Error && problem.repairs.size() == 1;
}

std::size_t numOnlyRepairs(const std::vector<Diagnostic>& problems) {
  return static_cast<std::size_t>(std::ranges::count_if(problems, hasOnlyRepair));
}

Edit fixAll(const PipelineDocument& document, const std::vector<Diagnostic>& problems) {
  EditScript script(document);
  std::size_t numApplied = applyRepairs(script, problems);
  for (int round = 1; numApplied > 0 && round < kMostRounds; ++round)
    numApplied = applyRepairs(script, lower(script.document()).diagnostics);
  return std::move(script).finish("Fix all problems");
}

std::size_t numErrorsFixed(const PipelineDocument& document, const std::vector<Diagnostic>& problems) {
  PipelineDocument fixed = document;
  if (!applyEdit(fixed, fixAll(document, problems))) return 0;
  const std::size_t numBefore = numErrors(document);
  return numBefore - std::min(numBefore, numErrors(fixed));
}

}  // namespace fuseline
