// From the boxes of a timeline to what is drawn of them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_tracks.h"

#include "core/profile/launch_wait.h"
#include "ui/theme/format.h"
#include "ui/timings/kernel_name.h"
#include "ui/timings/pass_look.h"
#include "ui/timings/step_category.h"
#include "ui/timings/step_tip.h"
#include "ui/widgets/tip_lines.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <map>

namespace fuseline::ui {

namespace {

constexpr double kLeastWidthPx = 2.0;
constexpr double kTellApartPx = TimelineCell::kNarrowPx;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

QString tipLine(const QString& text) { return QStringLiteral("<br>") + text; }

QString timesText(const TimelineBox& box, double totalNs) {
  const auto durationNs = static_cast<double>(box.durationNs());
  QString text = translated("%1, starting at %2")
                     .arg(formatDurationNs(durationNs), formatDurationNs(static_cast<double>(box.startNs)));
  if (totalNs > 0) text += translated(", %1 % of the round").arg(100.0 * durationNs / totalNs, 0, 'f', 1);
  return text;
}

/// wait: the line on the step's launch; empty: none.
QString stepTip(const StepRecord& step, const TimelineBox& box, double totalNs, const QString& wait) {
  return cappedTip(QStringLiteral("<b>%1</b>").arg(toQt(step.range()).toHtmlEscaped()) +
                   tipLine(timesText(box, totalNs)) + wait + stepLines(step, static_cast<double>(box.durationNs())));
}

class TrackBuilder {
 public:
  TrackBuilder(const VariantRecord& variant, const Graph* graph)
      : m_variant(variant),
        m_graph(graph),
        m_layout(layOut(variant)),
        m_waitsNs(launchWaitsNs(variant)),
        m_rankWaitsNs(rankWaitsNs(variant)) {}

  TimelineTrack build() {
    m_track.name = toQt(m_variant.name);
    m_track.endNs = static_cast<double>(m_layout.endNs);
    layOutRows();
    for (const TimelineBox& box : m_layout.boxes)
      if (const std::optional<int> row = rowOf(box)) addItem(box, *row);
    std::ranges::stable_sort(m_track.items, {}, &TimelineItem::row);
    m_track.summary = summary();
    return std::move(m_track);
  }

 private:
  void layOutRows() {
    m_track.hasKernels = std::ranges::any_of(
        m_layout.boxes, [](const TimelineBox& box) { return box.lane == 0 && box.level == TimelineLevel::Activity; });
    m_track.rows = {TimelineLevel::Pass, TimelineLevel::Step};
    if (m_track.hasKernels) m_track.rows.push_back(TimelineLevel::Activity);
    m_track.rows.insert(m_track.rows.end(), at(std::max(0, m_layout.firstRankLane() - 1)), TimelineLevel::Activity);
    m_track.rows.insert(m_track.rows.end(), at(m_layout.numRanks), TimelineLevel::RankStep);
    if (m_layout.hasHostLane) m_track.rows.push_back(TimelineLevel::Launch);
  }

  /// Beside the steps, a step stands for what was done for it.
  std::optional<int> rowOf(const TimelineBox& box) {
    if (box.lane == 0) return static_cast<int>(box.level);
    if (box.level == TimelineLevel::RankStep) return box.lane + (m_track.hasKernels ? 2 : 1);
    if (box.level == TimelineLevel::Step) m_besideLane[box.step] = box.lane;
    const auto step = m_besideLane.find(box.step);
    const bool isInStep = step != m_besideLane.end() && step->second == box.lane;
    if (box.level == TimelineLevel::Activity && box.step >= 0 && isInStep) return std::nullopt;
    return box.lane + (m_track.hasKernels ? 2 : 1);
  }

  const StepRecord* stepOf(const TimelineBox& box) const {
    return box.step < 0 ? nullptr : &m_variant.steps[at(box.step)];
  }

  void addItem(const TimelineBox& box, int row) {
    const StepRecord* step = stepOf(box);
    TimelineItem item{.level = box.level,
                      .row = row,
                      .startNs = static_cast<double>(box.startNs),
                      .endNs = static_cast<double>(box.endNs),
                      .phase = step ? phaseNamed(step->phase) : Phase::Forward};
    const ActivityRecord* activity = activityOf(m_variant, box);
    if (box.level == TimelineLevel::RankStep) item.waitNs = rankWaitNs(box);
    item.label = labelOf(box, step, activity);
    item.tip = tipOf(box, step, activity);
    if (step && box.level != TimelineLevel::Pass) {
      item.step = box.step;
      item.stepName = toQt(step->name);
      item.kernel = toQt(step->kernel);
      if (box.level == TimelineLevel::Step && step->bytes > 0) item.bytes = step->bytes;
      for (const std::string& owner : step->owners) item.owners.append(toQt(owner));
      item.ops = step->ops;
      item.isFused = !step->rule.empty();
      item.category = categoryOf(*step, m_graph);
    }
    m_track.items.push_back(std::move(item));
  }

  static QString labelOf(const TimelineBox& box, const StepRecord* step, const ActivityRecord* activity) {
    if (activity) return shortKernelName(activity->name);
    if (!step) return translated("all launches");
    if (box.level == TimelineLevel::Launch) return translated("launch %1").arg(toQt(step->name));
    return box.level == TimelineLevel::Pass ? passLabel(toQt(step->phase)) : toQt(step->name);
  }

  /// Empty if the device did not wait, or if it is unknown.
  QString waitTip(const TimelineBox& box) const {
    const double waitNs = box.step < 0 || m_waitsNs.empty() ? 0.0 : m_waitsNs[at(box.step)];
    return waitNs <= 0.0 ? QString()
                         : tipLine(translated("the device waited %1 for this launch").arg(formatDurationNs(waitNs)));
  }

  QString launchTip(const TimelineBox& box, const StepRecord* step) const {
    const QString what = step ? translated("The host launches %1").arg(toQt(step->name).toHtmlEscaped())
                              : translated("The host launches all steps at once (CUDA graph)");
    return QStringLiteral("<b>%1</b>").arg(what) + tipLine(timesText(box, m_track.endNs)) + waitTip(box);
  }

  double rankWaitNs(const TimelineBox& box) const {
    const std::vector<double>& waits = m_rankWaitsNs[at(box.step)];
    return waits.empty() ? 0.0 : waits[at(box.lane - m_layout.firstRankLane())];
  }

  QString rankTip(const TimelineBox& box, const StepRecord& step) const {
    QString tip =
        QStringLiteral("<b>%1: %2</b>").arg(toQt(laneName(m_layout, box.lane)), toQt(step.range()).toHtmlEscaped()) +
        tipLine(timesText(box, m_track.endNs));
    if (step.collective.empty()) return tip;
    tip += tipLine(translated("%1, %2 sent by each rank").arg(toQt(step.collective), formatByteCount(step.wireBytes)));
    if (const double waitNs = rankWaitNs(box); waitNs > 0.0)
      tip += tipLine(translated("%1 of it waiting for other ranks").arg(formatDurationNs(waitNs)));
    return tip;
  }

  QString tipOf(const TimelineBox& box, const StepRecord* step, const ActivityRecord* activity) const {
    const double totalNs = m_track.endNs;
    if (box.level == TimelineLevel::RankStep) return rankTip(box, *step);
    if (box.level == TimelineLevel::Launch) return launchTip(box, step);
    if (!activity && box.level == TimelineLevel::Step) return stepTip(*step, box, totalNs, waitTip(box));
    const QString name = activity ? toQt(activity->name).toHtmlEscaped() : passLabel(toQt(step->phase));
    QString tip = QStringLiteral("<b>%1</b>").arg(name) + tipLine(timesText(box, totalNs));
    if (activity && !activity->configuration.empty()) tip += tipLine(toQt(activity->configuration).toHtmlEscaped());
    if (activity && step) tip += tipLine(toQt(step->range()).toHtmlEscaped());
    if (activity && !step) tip += tipLine(translated("outside of all steps"));
    return tip;
  }

  QString summary() const {
    double busyNs = 0.0;
    for (const TimelineBox& box : m_layout.boxes)
      if (box.lane == 0 && box.level == TimelineLevel::Step) busyNs += static_cast<double>(box.durationNs());
    const QString text = translated("%1, %2 % of it in steps")
                             .arg(formatDurationNs(m_track.endNs))
                             .arg(100.0 * busyNs / std::max(m_track.endNs, 1.0), 0, 'f', 1);
    const std::optional<LaunchWaits> waits = launchWaits(m_variant);
    if (!waits) return text;
    return text + translated(", %1 waiting for host launches").arg(formatDurationNs(waits->waitedNs));
  }

  const VariantRecord& m_variant;
  const Graph* m_graph;
  TimelineLayout m_layout;
  std::vector<double> m_waitsNs;                   // by step; may be empty
  std::vector<std::vector<double>> m_rankWaitsNs;  // by step, then by rank
  TimelineTrack m_track;
  std::map<int, int> m_besideLane;  // by step
};

}  // namespace

std::vector<TimelineTrack> timelineTracks(const RunRecord& record, const Graph* graph) {
  std::vector<TimelineTrack> tracks;
  for (const VariantRecord& variant : record.variants)
    if (!variant.timeline.spans.empty()) tracks.push_back(TrackBuilder(variant, graph).build());
  return tracks;
}

std::vector<TimelineCell> cellsInView(const TimelineTrack& track, const TimelineRange& range, double widthPx) {
  std::vector<TimelineCell> cells;
  for (std::size_t i = 0; i < track.items.size(); ++i) {
    const TimelineItem& item = track.items[i];
    const double left = range.xAt(item.startNs, widthPx);
    const double right = std::max(range.xAt(item.endNs, widthPx), left + kLeastWidthPx);
    if (right < 0.0 || left > widthPx) continue;
    TimelineCell* before = cells.empty() ? nullptr : &cells.back();
    const bool isNarrow = right - left < kTellApartPx;
    if (before && isNarrow && track.items[before->last].row == item.row && right - before->left < kTellApartPx) {
      before->last = i;
      before->right = std::max(before->right, std::min(right, widthPx));
    } else {
      cells.push_back({i, i, std::max(left, 0.0), std::min(right, widthPx)});
    }
  }
  return cells;
}

QString spanSummary(const TimelineTrack& track, double startNs, double endNs) {
  int numSteps = 0;
  double busyNs = 0.0;
  for (const TimelineItem& item : track.items) {
    if (item.level != TimelineLevel::Step) continue;
    const double sharedNs = std::min(item.endNs, endNs) - std::max(item.startNs, startNs);
    if (sharedNs <= 0.0) continue;
    ++numSteps;
    busyNs += sharedNs;
  }
  return translated("%1: %2, %3 of it in steps")
      .arg(track.name, counted(numSteps, translated("step"), translated("steps")), formatDurationNs(busyNs));
}

}  // namespace fuseline::ui
