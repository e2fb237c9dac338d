// NearPlan: fuses the ops around edits of a large pipeline on its own thread, before the complete plan is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/incremental/neighborhood.h"
#include "ui/session/last_edits.h"

#include <QThreadPool>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

namespace fuseline {
struct KnownSavings;
}

namespace fuseline::ui {

class NearPlan {
 public:
  NearPlan();
  ~NearPlan();

  /// edits: those of the pipeline; nullopt: the plan changes for another reason, such as the device.
  void noteChange(quint64 generation, const LastEdits::Edits& edits) { m_changes.emplace_back(generation, edits); }
  /// Settings, recipe and switches of fusions.
  using Choices = std::tuple<std::uint64_t, Json, Json>;
  /// Savings of the fusions of an analysis with these choices.
  struct Savings {
    Choices choices;
    std::shared_ptr<const KnownSavings> known;
  };
  /// This analysis has all changes up to that one.
  void noteAnalysis(quint64 generation, std::shared_ptr<const Analysis> analysis, Savings savings);

  /// Calls `take`, if the ops around the changes since the last analysis can be fused alone, then `after`: on the
  /// thread, or at once. settings: the same number as long as `options` are the same.
  void start(const PipelineDocument& document, AnalysisOptions options, std::uint64_t settings,
             const std::stop_token& stop, std::function<void(Neighborhood)> take, std::function<void()> after);
  void waitForDone() { m_pool.waitForDone(); }

 private:
  std::optional<EditedWindow> window(const PipelineDocument& document) const;

  std::shared_ptr<const Analysis> m_analysis;
  std::vector<std::pair<quint64, LastEdits::Edits>> m_changes;  // since that
  Savings m_savings;                                            // of m_analysis
  std::shared_ptr<KnownSavings> m_known;                        // used by the thread alone
  Choices m_choices;                                            // of those
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
