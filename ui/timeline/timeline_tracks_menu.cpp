// Fills the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_tracks_menu.h"

#include "ui/widgets/translated.h"

#include <functional>

namespace fuseline::ui {

namespace {

using Change = std::function<void(ArrangedTracks&)>;

QAction* add(QMenu& menu, TimelineView& view, const QString& text, Change change) {
  QAction* action = menu.addAction(text);
  QObject::connect(action, &QAction::triggered, &view, [&view, change = std::move(change)] { view.arrange(change); });
  return action;
}

void addChoice(QMenu& menu, TimelineView& view, const QString& text, bool isOn, Change change) {
  QAction* action = add(menu, view, text, std::move(change));
  action->setCheckable(true);
  action->setChecked(isOn);
}

void addTrack(QMenu& menu, TimelineView& view, std::size_t track) {
  const ArrangedTracks& tracks = view.tracks();
  const bool isFolded = tracks.isFolded(track);
  const bool isPinned = tracks.isPinned(track);
  const bool isShown = tracks.isShown(track);
  addChoice(menu, view, translated("&Folded (Space)"), isFolded,
            [=](ArrangedTracks& changed) { changed.setFolded(track, !isFolded); });
  addChoice(menu, view, translated("&Pinned to the top (P)"), isPinned,
            [=](ArrangedTracks& changed) { changed.setPinned(track, !isPinned); });
  add(menu, view, translated("Move &up (Alt+Up)"), [=](ArrangedTracks& changed) { changed.move(track, -1); });
  add(menu, view, translated("Move &down (Alt+Down)"), [=](ArrangedTracks& changed) { changed.move(track, 1); });
  addChoice(menu, view, translated("&Hidden (H)"), !isShown,
            [=](ArrangedTracks& changed) { changed.setShown(track, !isShown); });
}

void addRows(QMenu& menu, TimelineView& view) {
  const ArrangedTracks& tracks = view.tracks();
  for (const TimelineRowKind kind :
       {TimelineRowKind::Kernels, TimelineRowKind::Beside, TimelineRowKind::Ranks, TimelineRowKind::Launches}) {
    if (!tracks.hasRows(kind)) continue;
    const bool isShown = !tracks.arrangement().hiddenRows.contains(kind);
    addChoice(menu, view, translated("Show %1").arg(nameOf(kind)), isShown,
              [=](ArrangedTracks& changed) { changed.setRowsShown(kind, !isShown); });
  }
}

}  // namespace

void fillTracksMenu(QMenu& menu, TimelineView& view, std::optional<std::size_t> track) {
  menu.clear();
  if (track) {
    menu.addSection(view.tracks().all()[*track].name);
    addTrack(menu, view, *track);
  } else {
    for (std::size_t each = 0; each < view.tracks().all().size(); ++each)
      addTrack(*menu.addMenu(view.tracks().all()[each].name), view, each);
  }
  menu.addSeparator();
  addRows(menu, view);
  menu.addSeparator();
  const bool isAllShown = view.tracks().numHiddenTracks() == 0 && view.tracks().arrangement().hiddenRows.empty();
  add(menu, view, translated("Show &all"), &ArrangedTracks::showAll)->setEnabled(!isAllShown);
}

}  // namespace fuseline::ui
