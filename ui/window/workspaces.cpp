// Four arrangements: one for each thing that people come for.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/workspaces.h"

#include <QLayout>
#include <QSettings>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr auto kDesign = "design";
constexpr auto kProfile = "profile";
constexpr auto kCurrentKey = "workspace/current";
constexpr auto kLayoutsKey = "workspace/layouts";
// Share of the window's height that measurements get where they are the subject.
constexpr double kProfileShare = 0.58;
constexpr double kCompareShare = 0.45;
constexpr int kBarIconPx = 12;

QStringList named(std::initializer_list<const char*> ids) {
  QStringList list;
  for (const char* id : ids) list.append(QString::fromLatin1(id));
  return list;
}

}  // namespace

Workspaces::Workspaces(Panes& panes, bool isKept, QObject* parent)
    : QObject(parent), m_panes(panes), m_isKept(isKept), m_choices(new QActionGroup(this)) {
  add(QString::fromLatin1(kDesign), tr("Design"), tr("Edit the pipeline: palette, inspector and problems"));
  add(QStringLiteral("explain"), tr("Explain"), tr("See why ops fuse or do not: fusions, plan and rules"));
  add(QString::fromLatin1(kProfile), tr("Profile"), tr("Study a run: timings, roofline, timeline and flame graph"));
  add(QStringLiteral("compare"), tr("Compare"), tr("Compare pipelines and runs: Changes and Runs side by side"));
  m_current = QString::fromLatin1(kDesign);
  if (isKept) load();
  for (QAction* choice : m_choices->actions()) choice->setChecked(choice->data().toString() == m_current);
}

void Workspaces::keep() {
  m_layouts.insert(m_current, m_panes.layout());
  if (!m_isKept) return;
  QVariantMap layouts;
  for (auto layout = m_layouts.cbegin(); layout != m_layouts.cend(); ++layout) layouts[layout.key()] = layout.value();
  QSettings settings;
  settings.setValue(QString::fromLatin1(kCurrentKey), m_current);
  settings.setValue(QString::fromLatin1(kLayoutsKey), layouts);
}

void Workspaces::load() {
  const QSettings settings;
  const QVariantMap layouts = settings.value(QString::fromLatin1(kLayoutsKey)).toMap();
  for (auto layout = layouts.cbegin(); layout != layouts.cend(); ++layout)
    m_layouts.insert(layout.key(), layout.value().toByteArray());
  const QString last = settings.value(QString::fromLatin1(kCurrentKey)).toString();
  for (const QAction* choice : m_choices->actions())
    if (choice->data().toString() == last) m_current = last;
}

void Workspaces::add(const QString& id, const QString& text, const QString& tip) {
  QAction* choice = m_choices->addAction(text);
  choice->setCheckable(true);
  choice->setData(id);
  choice->setToolTip(tip);
  connect(choice, &QAction::triggered, this, [this, id] { show(id); });
}

/// A tool bar in the corner of a menu bar does not grow with its buttons.
void Workspaces::keepRoomForMark(QAction& choice, QWidget& button) {
  if (choice.data().toString() != QString::fromLatin1(kProfile)) return;
  const QString text = choice.text();
  choice.setText(markedText());
  button.setMinimumWidth(button.sizeHint().width());
  choice.setText(text);
}

QString Workspaces::markedText() { return tr("Profile •"); }

void Workspaces::restoreLast() {
  if (m_layouts.contains(m_current)) m_panes.restoreLayout(m_layouts.value(m_current));
  Q_EMIT shown(m_current);
}

QToolBar* Workspaces::makeBar(QWidget* parent) const {
  auto* bar = new QToolBar(tr("Workspaces"), parent);
  bar->setObjectName(QStringLiteral("workspaces"));
  bar->setIconSize({kBarIconPx, kBarIconPx});  // there are none, but they decide the height
  bar->layout()->setContentsMargins(0, 0, 0, 0);
  bar->addActions(m_choices->actions());
  for (QAction* choice : m_choices->actions()) keepRoomForMark(*choice, *bar->widgetForAction(choice));
  return bar;
}

void Workspaces::addTo(QMenu& menu) const { menu.addActions(m_choices->actions()); }

bool Workspaces::show(const QString& id) {
  const auto choices = m_choices->actions();
  if (std::ranges::none_of(choices, [&](const QAction* choice) { return choice->data().toString() == id; }))
    return false;
  if (id == m_current) {
    Q_EMIT shown(id);
    return true;
  }
  m_layouts.insert(m_current, m_panes.layout());
  m_current = id;
  if (id == QString::fromLatin1(kProfile)) markProfile(false);
  for (QAction* choice : m_choices->actions()) choice->setChecked(choice->data().toString() == id);
  m_layouts.contains(id) ? m_panes.restoreLayout(m_layouts.value(id)) : arrange(id);
  keep();
  Q_EMIT shown(id);
  return true;
}

void Workspaces::resetCurrent() { arrange(m_current); }

void Workspaces::offerProfile() { markProfile(m_current != QString::fromLatin1(kProfile)); }

void Workspaces::markProfile(bool isNew) {
  for (QAction* choice : m_choices->actions())
    if (choice->data().toString() == QString::fromLatin1(kProfile))
      choice->setText(isNew ? markedText() : tr("Profile"));
}

void Workspaces::arrange(const QString& id) {
  if (id == QString::fromLatin1(kDesign)) return m_panes.restoreDefaultLayout();
  if (id == QStringLiteral("explain"))
    return m_panes.showAllBut(named({"palette", "inspector"}), QStringLiteral("rules"));
  const QStringList away = named({"palette", "inspector", "whyNot", "suggestions", "plan"});
  const bool isProfile = id == QString::fromLatin1(kProfile);
  m_panes.showAllBut(away, isProfile ? QStringLiteral("timings") : QStringLiteral("changes"));
  m_panes.moveBeside(isProfile ? named({"roofline", "timeline", "flame", "memory"}) : named({"runs", "sweep"}),
                     isProfile ? QStringLiteral("timings") : QStringLiteral("changes"),
                     isProfile ? kProfileShare : kCompareShare);
}

}  // namespace fuseline::ui
