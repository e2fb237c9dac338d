// Times of ops become colors and texts; the colors are those of reports.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/heat_overlay.h"

#include "ui/session/baselines.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

QString percentText(double share) {
  const double percent = 100.0 * share;
  return percent < 0.05 ? QStringLiteral("<0.1 %")
                        : QStringLiteral("%1 %").arg(QString::number(percent, 'f', percent < 9.95 ? 1 : 0));
}

QString timesText(double ratio) { return QStringLiteral("%1×").arg(QString::number(ratio, 'f', ratio < 9.95 ? 1 : 0)); }

/// 0 at the limit or below.
double heatOfDistance(double ratio, double farthest) {
  return farthest > 1.0 ? std::max(0.0, ratio - 1.0) / (farthest - 1.0) : 0.0;
}

/// Half or twice the time has the strongest color, and what may be noise none.
HeatHalf halfOfChange(const MetricChange& metric) {
  const double heat = metric.change.isSignificant() ? std::clamp(std::log2(metric.change.median), -1.0, 1.0) : 0.0;
  return {.heat = heat, .isChange = true, .text = toQt(changeText(metric))};
}

}  // namespace

HeatOverlay::HeatOverlay(const Session& session) : m_session(session) {
  const auto forget = [this] {
    m_measured.reset();
    compare();
    Q_EMIT changed();
  };
  m_pool.setMaxThreadCount(1);
  connect(&session.baselines(), &Baselines::changed, this, [this] {
    if (m_mode != HeatMode::Change) return;
    compare();
    Q_EMIT changed();
  });
  connect(&session.results(), &LastResults::runTaken, this, forget);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, forget);
}

HeatOverlay::~HeatOverlay() {
  m_pool.clear();
  m_pool.waitForDone();
}

/// On a thread: intervals of thousands of ops take seconds.
void HeatOverlay::compare() {
  m_pool.clear();
  m_changes.clear();
  ++m_number;
  m_isComparing = false;
  const auto& run = m_session.results().lastRun();
  const Baseline* const base = m_session.baselines().reference();
  if (m_mode != HeatMode::Change || !run || !base) return;
  m_isComparing = true;
  m_pool.start([this, number = m_number, record = base->record, now = run->record] {
    auto changes = changedOps(*record, now);
    QMetaObject::invokeMethod(
        this,
        [this, number, changes = std::move(changes)]() mutable {
          if (number != m_number) return;
          m_changes = std::move(changes);
          m_isComparing = false;
          Q_EMIT changed();
        },
        Qt::QueuedConnection);
  });
}

void HeatOverlay::show(HeatMode mode) {
  if (mode == m_mode) return;
  m_mode = mode;
  if (mode == HeatMode::Change) compare();
  Q_EMIT changed();
}

void HeatOverlay::choose(HeatMode mode) {
  m_isChosen = true;
  show(mode);
}

void HeatOverlay::chooseNext() {
  const bool hasChanges = m_session.baselines().reference() != nullptr;
  const HeatMode last = hasChanges ? HeatMode::Change : HeatMode::Roofline;
  if (m_mode == HeatMode::Error) return choose(HeatMode::Off);
  choose(m_mode < last ? static_cast<HeatMode>(static_cast<int>(m_mode) + 1) : HeatMode::Error);
}

void HeatOverlay::suggest(HeatMode mode) {
  if (!m_isChosen) show(mode);
}

const MeasuredOps* HeatOverlay::measured() const {
  const auto& run = m_session.results().lastRun();
  if (!run || run->isStale) return nullptr;
  if (!m_measured) m_measured = measuredOps(run->record);
  return m_measured->hottestNs > 0.0 ? &*m_measured : nullptr;
}

/// The time of a fused step is that of all of its ops: only the label of the hull says it.
std::optional<HeatHalf> HeatOverlay::halfOf(const OpPass& pass, const MeasuredOps& all) const {
  if (pass.ns <= 0.0) return std::nullopt;
  const auto half = [&](double heat, const QString& text) {
    return HeatHalf{.heat = heat, .text = pass.isShared ? QString() : text};
  };
  switch (m_mode) {
    case HeatMode::Time: return half(pass.ns / all.hottestNs, formatDurationNs(pass.ns));
    case HeatMode::Share: return half(pass.ns / all.hottestNs, percentText(pass.ns / all.sumNs));
    case HeatMode::Roofline:
      if (pass.timesFromRoofline() <= 0.0) return std::nullopt;
      return half(heatOfDistance(pass.timesFromRoofline(), all.farthest), timesText(pass.timesFromRoofline()));
    default: return std::nullopt;
  }
}

const std::map<std::string, OpChange>& HeatOverlay::changes() const {
  static const std::map<std::string, OpChange> kNone;
  const auto& run = m_session.results().lastRun();
  return run && !run->isStale && m_session.baselines().reference() ? m_changes : kNone;
}

void HeatOverlay::addChangesTo(std::vector<NodeLook>& looks) const {
  const std::map<std::string, OpChange>& all = changes();
  const auto half = [](const std::optional<MetricChange>& change) {
    return change ? std::optional(halfOfChange(*change)) : std::nullopt;
  };
  for (NodeLook& look : looks) {
    const auto found = all.find(look.id);
    if (look.kind != NodeKind::Op || found == all.end()) continue;
    look.forwardHeat = half(found->second.forward);
    look.backwardHeat = half(found->second.backward);
  }
}

void HeatOverlay::addTo(std::vector<NodeLook>& looks) const {
  if (m_mode == HeatMode::Change) return addChangesTo(looks);
  const MeasuredOps* const all = measured();
  if (!all) return;
  for (NodeLook& look : looks) {
    const auto found = all->ops.find(look.id);
    if (look.kind != NodeKind::Op || found == all->ops.end()) continue;
    look.forwardHeat = halfOf(found->second.forward, *all);
    look.backwardHeat = halfOf(found->second.backward, *all);
  }
}

std::optional<HeatScale> HeatOverlay::scale() const {
  if (m_mode == HeatMode::Change && !changes().empty())
    return HeatScale{.title = tr("Time now / time in baseline %1").arg(m_session.baselines().reference()->letter()),
                     .least = QStringLiteral("½×"),
                     .most = QStringLiteral("2×"),
                     .isOfChanges = true};
  const MeasuredOps* const all = measured();
  if (!all) return std::nullopt;
  switch (m_mode) {
    case HeatMode::Time:
      return HeatScale{tr("Median time: forward left, backward right"), QStringLiteral("0"),
                       formatDurationNs(all->hottestNs)};
    case HeatMode::Share:
      return HeatScale{tr("Share of the sum of all steps, %1").arg(formatDurationNs(all->sumNs)), QStringLiteral("0 %"),
                       percentText(all->hottestNs / all->sumNs)};
    case HeatMode::Roofline:
      if (all->farthest <= 0.0) return std::nullopt;
      return HeatScale{tr("Time / roofline limit"), QStringLiteral("1×"), timesText(all->farthest)};
    default: return std::nullopt;
  }
}

QString HeatOverlay::description() const {
  switch (m_mode) {
    case HeatMode::Off: return tr("Overlay off. Press O for times.");
    case HeatMode::Error:
      return m_session.results().lastNumerics() ? tr("Overlay: RMS error. Press O to turn it off.")
                                                : tr("Overlay: RMS error. Not measured yet: press Ctrl+Shift+Enter.");
    case HeatMode::Roofline:
      if (measured() && !scale()) return tr("Overlay: distance from the roofline. This run has no measured peaks.");
      break;
    case HeatMode::Change:
      if (!m_session.baselines().reference())
        return tr("Overlay: change from a baseline. None is pinned: pin a run above Timings.");
      if (measured())
        return changes().empty() && !m_isComparing
                   ? tr("Overlay: change from baseline %1. It measured none of these ops.")
                         .arg(m_session.baselines().reference()->letter())
                   : tr("Overlay: change from baseline %1. Press O for RMS errors.")
                         .arg(m_session.baselines().reference()->letter());
      break;
    default: break;
  }
  if (!measured()) return tr("Overlay: times of the last run. Not measured yet: press Ctrl+Enter.");
  return m_mode == HeatMode::Time    ? tr("Overlay: time. Press O for shares.")
         : m_mode == HeatMode::Share ? tr("Overlay: share. Press O for the distance from the roofline.")
                                     : tr("Overlay: distance from the roofline. Press O for the next overlay.");
}

}  // namespace fuseline::ui
