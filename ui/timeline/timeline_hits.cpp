// Positions to what is there.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_hits.h"

#include "ui/theme/format.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/widgets/translated.h"

namespace fuseline::ui {

namespace {

QString headTip(const TimelineHits& hits, std::size_t track, QPointF position) {
  if (hits.stack.foldArea(track).contains(position))
    return hits.stack.tracks().isFolded(track) ? translated("Unfold the track (Space)")
                                               : translated("Fold the track (Space)");
  if (hits.stack.pinArea(track, hits.widthPx).contains(position))
    return hits.stack.tracks().isPinned(track) ? translated("Unpin the track (P)")
                                               : translated("Pin the track to the top (P)");
  return translated("Drag up or down to move the track (Alt+Up, Alt+Down)");
}

QString cellTip(const TimelineTrack& track, const TimelineCell& cell) {
  if (!cell.isSeveral()) return track.items[cell.first].tip;
  return translated("<b>%1 too short to show separately</b><br>from %2 to %3; double-click to zoom in")
      .arg(cell.last - cell.first + 1)
      .arg(track.items[cell.first].label.toHtmlEscaped(), track.items[cell.last].label.toHtmlEscaped());
}

}  // namespace

std::optional<std::pair<std::size_t, TimelineCell>> TimelineHits::cellAt(QPointF position) const {
  constexpr double kReachPx = 1.0;  // a box of one pixel can be met
  const std::optional<std::size_t> track = stack.trackAt(position.y());
  if (!track) return std::nullopt;
  const TimelineTrack& hit = stack.tracks().all()[*track];
  for (const TimelineCell& cell : cellsInView(hit, range, widthPx))
    if (stack.tracks().isShown(*track, hit.items[cell.first].row) &&
        stack.areaOf(*track, cell).adjusted(-kReachPx, 0, kReachPx, 0).contains(position))
      return std::pair(*track, cell);
  return std::nullopt;
}

const PlacedNote* TimelineHits::noteAt(QPointF position) const {
  for (const PlacedNote& placed : notes)
    if (noteArea(stack, range, widthPx, placed).contains(position)) return &placed;
  return nullptr;
}

std::optional<std::size_t> TimelineHits::headAt(QPointF position) const {
  const std::optional<std::size_t> track = stack.trackAt(position.y());
  return track && stack.isInHead(*track, position.y()) ? track : std::nullopt;
}

QString TimelineHits::tipAt(QPointF position) const {
  if (const PlacedNote* placed = noteAt(position)) return toQt(stretchNoteLine(placed->note)).toHtmlEscaped();
  if (const auto track = headAt(position)) return headTip(*this, *track, position);
  const auto found = cellAt(position);
  return found ? cellTip(stack.tracks().all()[found->first], found->second) : QString();
}

}  // namespace fuseline::ui
