// One edit at a time: after each, other errors may be gone or have other repairs.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/repair.h"

#include "core/edit/apply_edit.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace fuseline {

namespace {

class Repairer {
 public:
  Repairer(PipelineDocument document, const AnalysisOptions& options) : m_options(options) {
    m_result.document = std::move(document);
  }

  RepairedDocument repair() {
    look();
    while (repairOne()) look();
    return std::move(m_result);
  }

 private:
  /// Identity of a problem, which stays the same when others are repaired.
  using Try = std::tuple<std::string, std::string, std::string, std::string>;

  void look() { m_result.diagnostics = analyze(m_result.document, m_options).lowered.diagnostics; }

  bool repairOne() {
    return std::ranges::any_of(std::vector<Diagnostic>(m_result.diagnostics), [&](const Diagnostic& problem) {
      return problem.severity == Severity::Error && applyFirst(problem);
    });
  }

  bool applyFirst(const Diagnostic& problem) {
    return std::ranges::any_of(problem.repairs, [&](const Repair& repair) {
      if (!m_tried.emplace(problem.code, problem.node, problem.port, repair.label).second) return false;
      if (!applyEdit(m_result.document, repair.edit)) return false;
      m_result.applied.push_back({.problem = problem, .label = repair.label});
      return true;
    });
  }

  const AnalysisOptions& m_options;
  RepairedDocument m_result;
  std::set<Try> m_tried;
};

}  // namespace

RepairedDocument repair(PipelineDocument document, const AnalysisOptions& options) {
  return Repairer(std::move(document), options).repair();
}

}  // namespace fuseline
