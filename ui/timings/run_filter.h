// RunFilter: which steps of a run the measuring panes show, with the filters chosen before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "ui/session/session.h"

#include <QObject>
#include <QString>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// One condition: an op of the pipeline, a category of ops, a pass, a block, or a part of a name.
struct FilterTerm {
  enum class Kind { Op, Category, Pass, Block, Text };
  Kind kind = Kind::Text;
  QString value;
  bool operator==(const FilterTerm&) const = default;
};
/// "category: Linear".
QString textOf(const FilterTerm& term);

/// Steps by pass and name.
using StepNames = std::set<std::pair<std::string, std::string>>;

/// A step is kept if it meets one term of each kind that has terms. Without terms all steps are kept.
class RunFilter : public QObject {
  Q_OBJECT

 public:
  explicit RunFilter(Session& session, QObject* parent = nullptr);

  const std::vector<FilterTerm>& terms() const { return m_states[m_now]; }
  bool isActive() const { return !terms().empty(); }
  bool has(const FilterTerm& term) const;
  void add(const FilterTerm& term);
  void remove(const FilterTerm& term);
  void clear();
  bool canGoBack() const { return m_now > 0; }
  bool canGoForward() const { return m_now + 1 < m_states.size(); }
  void goBack();
  void goForward();

  /// document, graph: of the pipeline that ran; nullptr: categories are the names of kernels.
  bool keeps(const StepRecord& step, const PipelineDocument& document, const Graph* graph) const;
  /// A step of the plan as it is now, measured or not.
  bool keeps(const StepRecord& step) const;
  /// A row of an op in these passes, such as a tensor: whether a step of the op with the name of the row is kept.
  bool keepsRow(const std::string& name, const std::string& owner, const std::set<std::string>& passes) const;
  /// The kept steps of both plans.
  StepNames keptSteps(const LastRun& run, const Graph* graph) const;
  /// The run with only these steps in its plans; totals are those of the whole run.
  RunRecord filtered(const LastRun& run, const Graph* graph) const;
  /// Terms that the last run has steps for, or without one the plan: its categories, passes and blocks.
  std::vector<FilterTerm> choices() const;

 Q_SIGNALS:
  void changed();

 private:
  void enter(std::vector<FilterTerm> terms);

  Session& m_session;
  std::vector<std::vector<FilterTerm>> m_states = {{}};
  std::size_t m_now = 0;
};

/// The graph of what ran, while the pipeline is still that; else nullptr.
const Graph* graphOfRun(const Session& session);

}  // namespace fuseline::ui
