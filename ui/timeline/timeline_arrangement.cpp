// Kinds of rows, and the settings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_arrangement.h"

#include "ui/widgets/translated.h"

#include <QSettings>

#include <utility>

namespace fuseline::ui {

namespace {

constexpr auto kGroup = "timeline/tracks";
constexpr auto kOrderKey = "order";
constexpr auto kFoldedKey = "folded";
constexpr auto kPinnedKey = "pinned";
constexpr auto kHiddenKey = "hidden";
constexpr auto kHiddenRowsKey = "hiddenRows";

/// Rows that can be hidden, by their names in the settings.
constexpr std::pair<const char*, TimelineRowKind> kIds[] = {{"kernels", TimelineRowKind::Kernels},
                                                            {"beside", TimelineRowKind::Beside},
                                                            {"ranks", TimelineRowKind::Ranks},
                                                            {"launches", TimelineRowKind::Launches}};

}  // namespace

TimelineRowKind kindOf(const TimelineTrack& track, int row) {
  switch (track.rows[static_cast<std::size_t>(row)]) {
    case TimelineLevel::Pass: return TimelineRowKind::Passes;
    case TimelineLevel::Step: return TimelineRowKind::Steps;
    case TimelineLevel::Launch: return TimelineRowKind::Launches;
    case TimelineLevel::RankStep: return TimelineRowKind::Ranks;
    case TimelineLevel::Activity: break;
  }
  const bool isBelowSteps = row > 0 && track.rows[static_cast<std::size_t>(row) - 1] == TimelineLevel::Step;
  return track.hasKernels && isBelowSteps ? TimelineRowKind::Kernels : TimelineRowKind::Beside;
}

QString nameOf(TimelineRowKind kind) {
  switch (kind) {
    case TimelineRowKind::Passes: return translated("passes");
    case TimelineRowKind::Steps: return translated("steps");
    case TimelineRowKind::Kernels: return translated("kernels");
    case TimelineRowKind::Beside: return translated("work outside of steps");
    case TimelineRowKind::Ranks: return translated("ranks");
    case TimelineRowKind::Launches: return translated("host launches");
  }
  return {};
}

TimelineArrangement loadTimelineArrangement() {
  QSettings settings;
  settings.beginGroup(kGroup);
  const QStringList rows = settings.value(kHiddenRowsKey).toStringList();
  TimelineArrangement arrangement{.order = settings.value(kOrderKey).toStringList(),
                                  .folded = settings.value(kFoldedKey).toStringList(),
                                  .pinned = settings.value(kPinnedKey).toStringList(),
                                  .hidden = settings.value(kHiddenKey).toStringList(),
                                  .hiddenRows = {}};
  for (const auto& [id, kind] : kIds)
    if (rows.contains(QString::fromLatin1(id))) arrangement.hiddenRows.insert(kind);
  return arrangement;
}

void saveTimelineArrangement(const TimelineArrangement& arrangement) {
  QStringList rows;
  for (const auto& [id, kind] : kIds)
    if (arrangement.hiddenRows.contains(kind)) rows.append(QString::fromLatin1(id));
  QSettings settings;
  settings.beginGroup(kGroup);
  settings.setValue(kOrderKey, arrangement.order);
  settings.setValue(kFoldedKey, arrangement.folded);
  settings.setValue(kPinnedKey, arrangement.pinned);
  settings.setValue(kHiddenKey, arrangement.hidden);
  settings.setValue(kHiddenRowsKey, rows);
}

}  // namespace fuseline::ui
