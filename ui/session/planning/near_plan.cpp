// The window is cut out here, so that the thread needs no copy of the document.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/planning/near_plan.h"

#include "core/edit/edit_extent.h"
#include "core/plan/savings/window_shapes.h"

#include <algorithm>
#include <iterator>

namespace fuseline::ui {

namespace {

/// The whole of fewer is planned as soon.
constexpr std::size_t kManyNodes = 400;
/// An edit adds a few.
constexpr std::size_t kMostSavings = 20'000;

/// Gains that runs measured are of a pipeline without the edits.
bool isMeasured(const Analysis& analysis) { return analysis.report.device.isKnown(); }

}  // namespace

NearPlan::NearPlan() : m_known(std::make_shared<KnownSavings>()) { m_pool.setMaxThreadCount(1); }

NearPlan::~NearPlan() { m_pool.waitForDone(); }

void NearPlan::noteAnalysis(quint64 generation, std::shared_ptr<const Analysis> analysis, Savings savings) {
  m_analysis = std::move(analysis);
  m_savings = std::move(savings);
  std::erase_if(m_changes, [&](const auto& change) { return change.first <= generation; });
}

std::optional<EditedWindow> NearPlan::window(const PipelineDocument& document) const {
  if (!m_analysis || m_analysis->graph().nodes().size() <= kManyNodes || isMeasured(*m_analysis)) return std::nullopt;
  std::vector<Edit> edits;
  for (const auto& [generation, some] : m_changes) {
    if (!some) return std::nullopt;
    std::ranges::copy(*some, std::back_inserter(edits));
  }
  const EditExtent extent = extentOf(edits);
  return extent.changesMore ? windowAround(extent, document, *m_analysis) : std::nullopt;
}

void NearPlan::start(const PipelineDocument& document, AnalysisOptions options, std::uint64_t settings,
                     const std::stop_token& stop, std::function<void(Neighborhood)> take, std::function<void()> after) {
  std::optional<EditedWindow> around = window(document);
  if (!around) return after();
  options.gains = {.decides = false};
  m_pool.start([this, around = std::move(*around), earlier = m_analysis, savings = m_savings,
                options = std::move(options), settings, stop, take = std::move(take),
                after = std::move(after)]() mutable {
    if (stop.stop_requested()) return;
    const Choices choices{settings, around.document.recipe(), around.document.fusion()};
    if (choices != std::exchange(m_choices, choices) || m_known->savings.size() > kMostSavings)
      m_known = savings.choices == choices && savings.known ? std::make_shared<KnownSavings>(*savings.known)
                                                            : std::make_shared<KnownSavings>();
    if (auto near = neighborhoodOf(std::move(around), *earlier, options, *m_known)) take(std::move(*near));
    after();
  });
}

}  // namespace fuseline::ui
