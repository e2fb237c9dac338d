// Two commands a number.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/bookmark_commands.h"

#include <QAction>

namespace fuseline::ui {

BookmarkCommands::BookmarkCommands(Session& session, GraphView& view, bool isKept, QObject* parent)
    : QObject(parent), m_view(view), m_bookmarks(isKept) {
  m_bookmarks.open(session.pipeline().path());
  connect(&session.pipeline(), &OpenPipeline::replaced, this,
          [this, &session] { m_bookmarks.open(session.pipeline().path()); });
  // Queued: of another document this signal comes first, and what it had is no bookmark of the new one.
  connect(
      &session.pipeline(), &OpenPipeline::changed, this,
      [this, &session] { m_bookmarks.follow(session.pipeline().path()); }, Qt::QueuedConnection);
}

void BookmarkCommands::addMenu(QMenu& viewMenu) {
  QMenu* menu = viewMenu.addMenu(tr("&Bookmarks"));
  for (int number = 1; number <= kMaxBookmarks; ++number) {
    QAction* action = menu->addAction(tr("Go to bookmark &%1").arg(number));
    action->setShortcut(QKeySequence(static_cast<Qt::Key>(Qt::Key_0 + number)));
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, [this, number] { show(number); });
    m_view.parentWidget()->addAction(action);  // those of the view are its context menu
  }
  menu->addSeparator();
  for (int number = 1; number <= kMaxBookmarks; ++number) {
    QAction* action = menu->addAction(tr("Set bookmark %1").arg(number));
    action->setShortcut(QKeySequence(Qt::CTRL | Qt::SHIFT | static_cast<Qt::Key>(Qt::Key_0 + number)));
    connect(action, &QAction::triggered, this, [this, number] { set(number); });
  }
}

void BookmarkCommands::set(int number) {
  if (m_view.graph().scope().isInside())
    return Q_EMIT hint(
        tr("Bookmarks can be set only outside of blocks. Press Ctrl+Up to leave the block, then set bookmark %1.")
            .arg(number));
  m_bookmarks.set(number, {m_view.camera().middle(), m_view.zoom()});
  Q_EMIT hint(tr("Bookmark %1 set. Press %1 to return.").arg(number));
}

void BookmarkCommands::show(int number) {
  const std::optional<ViewPlace> place = m_bookmarks.at(number);
  if (!place) return Q_EMIT hint(tr("Bookmark %1 is not set. Press Ctrl+Shift+%1 to set it.").arg(number));
  m_view.graph().scope().leaveTo(0);
  m_view.camera().showPlace(place->middle, place->zoom);
}

}  // namespace fuseline::ui
