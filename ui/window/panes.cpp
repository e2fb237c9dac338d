// Docks made from the catalog, their layout, and going from pane to pane.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/panes.h"

#include "ui/widgets/pane_area.h"

#include <QApplication>

#include <algorithm>

namespace fuseline::ui {

namespace {

// Raised when panes are added or renamed, so that an old layout is not forced onto a new window.
constexpr int kLayoutVersion = 11;
constexpr double kTimingsShare = 0.27;
// A window of this height has room for both: both lanes of the plan, and a table beside its samples and rounds. In a
// lower one they share a place, so that the canvas keeps its own.
constexpr int kRoomyWindowPx = 900;
constexpr int kRoomyPlanHeightPx = 150;
constexpr int kRoomyTimingsHeightPx = 335;
constexpr int kPaletteWidthPx = 194;
constexpr int kInspectorWidthPx = 356;
constexpr int kNarrowInspectorPx = 300;  // where the canvas needs the rest
constexpr int kNarrowWindowPx = 1200;
constexpr int kInspectorHeightPx = 430;
constexpr int kWhyNotHeightPx = 470;

}  // namespace

Panes::Panes(QMainWindow& window, QWidget& canvas, const PaneNeeds& needs)
    : QObject(&window),
      m_window(window),
      m_canvas(canvas),
      m_rows(paneCatalog()),
      m_ring(new PaneRing(needs.theme, window.centralWidget())) {
  for (const PaneRow& row : m_rows) addDock(row, needs);
}

/// Where text runs from right to left, the palette begins the window on the right.
Qt::DockWidgetArea Panes::readingArea(Qt::DockWidgetArea area) const {
  if (!m_window.isRightToLeft()) return area;
  return area == Qt::LeftDockWidgetArea    ? Qt::RightDockWidgetArea
         : area == Qt::RightDockWidgetArea ? Qt::LeftDockWidgetArea
                                           : area;
}

void Panes::addDock(const PaneRow& row, const PaneNeeds& needs) {
  auto* dock = new QDockWidget(row.title, &m_window);
  dock->setObjectName(row.id);
  dock->setAccessibleName(row.title);
  m_panes.append(row.make(needs));
  dock->setWidget(new PaneArea(*m_panes.back()));  // a small window is not held open by its panes
  m_window.addDockWidget(readingArea(row.area), dock);
  m_docks.append(dock);
}

QStringList Panes::ids() const {
  QStringList ids;
  for (const PaneRow& row : m_rows) ids.append(row.id);
  return ids;
}

QKeySequence Panes::keysOf(const QString& id) const { return std::ranges::find(m_rows, id, &PaneRow::id)->keys; }

QDockWidget& Panes::dock(const QString& id) const { return *m_docks[ids().indexOf(id)]; }

QList<QAction*> Panes::toggles() {
  QList<QAction*> actions;
  for (const PaneRow& row : m_rows) actions.append(new PaneToggle(*this, row.id, row.title));
  return actions;
}

bool Panes::isInFront(const QString& id) const { return isInSight(*m_panes[ids().indexOf(id)]); }

bool Panes::show(const QString& id) {
  if (!ids().contains(id)) return false;
  dock(id).show();
  dock(id).raise();
  return true;
}

void Panes::goTo(const QString& id) {
  show(id);
  focus(*m_panes[ids().indexOf(id)]);
}

void Panes::setCount(const QString& id, int count) {
  const QString title = std::ranges::find(m_rows, id, &PaneRow::id)->title;
  dock(id).setWindowTitle(count == 0 ? title : tr("%1 (%2)").arg(title).arg(count));
}

void Panes::showAllBut(const QStringList& hidden, const QString& front) {
  restoreDefaultLayout();
  for (QDockWidget* dock : m_docks) dock->setVisible(!hidden.contains(dock->objectName()));
  show(front);
}

void Panes::moveBeside(const QStringList& ids, const QString& left, double heightShare) {
  QDockWidget& first = dock(ids.front());
  m_window.addDockWidget(Qt::BottomDockWidgetArea, &first, Qt::Horizontal);
  for (const QString& id : ids.mid(1)) m_window.tabifyDockWidget(&first, &dock(id));
  first.raise();
  dock(left).raise();
  const int height = qRound(m_window.height() * heightShare);
  m_window.resizeDocks({&dock(left), &first}, {height, height}, Qt::Vertical);
  m_window.resizeDocks({&dock(left), &first}, {m_window.width() / 2, m_window.width() / 2}, Qt::Horizontal);
}

// ------------------------------------------------------------------------------------------------------------ layout

/// All docks of an area as tabs of one place, so that no window is too narrow or too low for them.
void Panes::gather() {
  const bool isMirrored = m_window.isRightToLeft();
  m_window.setCorner(isMirrored ? Qt::BottomLeftCorner : Qt::BottomRightCorner, readingArea(Qt::RightDockWidgetArea));
  for (qsizetype i = m_docks.indexOf(&dock(QStringLiteral("plan"))) + 1; i < m_docks.size(); ++i)
    m_window.tabifyDockWidget(m_docks[i - 1], m_docks[i]);
  m_window.tabifyDockWidget(&dock(QStringLiteral("whyNot")), &dock(QStringLiteral("suggestions")));
}

void Panes::applyDefaultLayout() {
  QDockWidget& palette = dock(QStringLiteral("palette"));
  QDockWidget& inspector = dock(QStringLiteral("inspector"));
  QDockWidget& whyNot = dock(QStringLiteral("whyNot"));
  QDockWidget& plan = dock(QStringLiteral("plan"));
  QDockWidget& timings = dock(QStringLiteral("timings"));
  const bool isRoomy = m_window.height() >= kRoomyWindowPx;
  if (isRoomy) {
    m_window.splitDockWidget(&plan, &timings, Qt::Vertical);
    for (qsizetype i = m_docks.indexOf(&timings) + 1; i < m_docks.size(); ++i)
      m_window.tabifyDockWidget(m_docks[i - 1], m_docks[i]);
  }
  isRoomy ? timings.raise() : plan.raise();
  whyNot.raise();
  const int inspectorPx = m_window.width() < kNarrowWindowPx ? kNarrowInspectorPx : kInspectorWidthPx;
  m_window.resizeDocks({&palette, &inspector}, {kPaletteWidthPx, inspectorPx}, Qt::Horizontal);
  m_window.resizeDocks({&inspector, &whyNot}, {kInspectorHeightPx, kWhyNotHeightPx}, Qt::Vertical);
  const int share = qRound(m_window.height() * kTimingsShare);
  if (isRoomy)
    m_window.resizeDocks({&plan, &timings}, {kRoomyPlanHeightPx, std::max(share, kRoomyTimingsHeightPx)}, Qt::Vertical);
  else
    m_window.resizeDocks({&plan}, {std::max(share, kRoomyPlanHeightPx)}, Qt::Vertical);
}

void Panes::restoreDefaultLayout() {
  if (m_gathered.isEmpty()) {
    gather();
    m_gathered = layout();
  } else {
    m_window.restoreState(m_gathered, kLayoutVersion);
  }
  applyDefaultLayout();
}

QByteArray Panes::layout() const { return m_window.saveState(kLayoutVersion); }

void Panes::restoreLayout(const QByteArray& layout) { m_window.restoreState(layout, kLayoutVersion); }

// ---------------------------------------------------------------------------------------------------------- keyboard

/// In the order of the keyboard: the canvas comes behind the first one.
QList<QWidget*> Panes::visible() const {
  QList<QWidget*> panes = m_panes;
  panes.insert(1, &m_canvas);
  // Those behind another tab stand outside of the window.
  panes.removeIf([](const QWidget* pane) {
    const QRect area(pane->mapTo(pane->window(), QPoint()), pane->size());
    return !pane->isVisible() || !area.intersects(pane->window()->rect());
  });
  return panes;
}

void Panes::goOn(int step) {
  const QList<QWidget*> panes = visible();
  const QWidget* focused = QApplication::focusWidget();
  const auto hasFocus = [&](const QWidget* pane) {
    return focused && (pane == focused || pane->isAncestorOf(focused));
  };
  const auto current = std::ranges::find_if(panes, hasFocus) - panes.begin();
  const bool isElsewhere = current == panes.size();  // in a toolbar: the first pane comes next, or the last one
  const qsizetype next = isElsewhere ? (step > 0 ? 0 : panes.size() - 1) : current + step;
  focus(*panes[(next + panes.size()) % panes.size()]);
}

void Panes::focus(QWidget& pane) {
  pane.activateWindow();  // it may float
  firstInPane(pane).setFocus(Qt::ShortcutFocusReason);
  m_ring->showAround(pane);
}

// ---------------------------------------------------------------------------------------------------------- commands

PaneToggle::PaneToggle(Panes& panes, const QString& id, const QString& title)
    : QAction(title, &panes), m_panes(panes), m_id(id) {
  setCheckable(true);
  const QAction& isOpen = *panes.dock(id).toggleViewAction();
  setChecked(isOpen.isChecked());
  connect(&isOpen, &QAction::toggled, this, &QAction::setChecked);
  connect(this, &QAction::triggered, this, &PaneToggle::toggle);
}

void PaneToggle::show() { m_panes.goTo(m_id); }

void PaneToggle::toggle() {
  m_panes.isInFront(m_id) ? void(m_panes.dock(m_id).close()) : show();
  setChecked(m_panes.dock(m_id).toggleViewAction()->isChecked());
}

}  // namespace fuseline::ui
