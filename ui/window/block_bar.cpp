// A row of buttons, and a sentence on what edits are about.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/block_bar.h"

#include "ui/theme/format.h"
#include "ui/theme/message_ground.h"
#include "ui/widgets/elided_label.h"

#include <QLabel>

namespace fuseline::ui {

BlockBar::BlockBar(CanvasScope& scope, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_scope(scope), m_row(new QHBoxLayout(this)), m_note(new ElidedLabel(this)) {
  setAccessibleName(tr("Path of the block on the canvas"));
  m_row->setContentsMargins(12, 4, 12, 4);
  m_row->setSpacing(2);
  m_row->addSpacing(12);
  m_row->addWidget(m_note, 1);
  useMessageGround(*this, theme);
  connect(&scope, &CanvasScope::pathChanged, this, &BlockBar::refresh);
  connect(&scope, &CanvasScope::contentChanged, this, &BlockBar::refresh);
  refresh();
}

QString BlockBar::note() const {
  const QString block = toQt(m_scope.blockName());
  const QString place = m_scope.path().join(u'.');
  if (m_scope.numInstances() == 1) return tr("Inside block %1.").arg(block);
  return tr("Inside block %1. Edits apply to all %2 instances. Shapes and fusions are shown for %3.")
      .arg(block)
      .arg(m_scope.numInstances())
      .arg(place);
}

void BlockBar::refresh() {
  setVisible(m_scope.isInside());
  if (!m_scope.isInside()) return;
  if (m_shown != m_scope.path() || m_places.isEmpty()) refreshPlaces();
  m_note->setWholeText(note());
}

/// A button that is pressed may be the reason: it goes when it has been.
void BlockBar::refreshPlaces() {
  for (QWidget* arrow : std::as_const(m_arrows)) arrow->deleteLater();
  for (QToolButton* place : std::as_const(m_places)) {
    place->hide();
    place->deleteLater();
  }
  m_arrows.clear();
  m_places.clear();
  m_shown = m_scope.path();
  addPlace(tr("Pipeline"), 0);
  for (qsizetype depth = 1; depth <= m_shown.size(); ++depth) addPlace(m_shown.at(depth - 1), depth);
}

void BlockBar::addPlace(const QString& name, qsizetype depth) {
  const bool isHere = depth == m_scope.path().size();
  int at = static_cast<int>(m_places.size() + m_arrows.size());
  if (depth > 0) {
    m_arrows.append(new QLabel(QStringLiteral("▸"), this));
    m_row->insertWidget(at++, m_arrows.last());
  }
  auto* place = new QToolButton(this);
  place->setText(name);
  place->setAutoRaise(true);
  place->setFocusPolicy(Qt::StrongFocus);
  place->setEnabled(!isHere);
  place->setToolTip(isHere ? tr("Shown on the canvas") : tr("Leave to %1").arg(name));
  place->setAccessibleName(place->toolTip());
  connect(place, &QToolButton::clicked, this, [this, depth] { m_scope.leaveTo(depth); });
  m_places.append(place);
  m_row->insertWidget(at, place);
}

}  // namespace fuseline::ui
