// The bar above the timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/hidden_tracks_bar.h"

#include "ui/theme/format.h"
#include "ui/theme/message_ground.h"

#include <QHBoxLayout>
#include <QToolButton>

namespace fuseline::ui {

HiddenTracksBar::HiddenTracksBar(const Theme& theme, QWidget* parent) : QWidget(parent), m_label(new QLabel(this)) {
  auto* show = new QToolButton(this);
  show->setText(tr("Show all"));
  show->setAccessibleName(tr("Show all tracks and rows of the timeline"));
  show->setAutoRaise(true);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(10, 2, 8, 2);
  row->addWidget(m_label, 1);
  row->addWidget(show);
  connect(show, &QToolButton::clicked, this, &HiddenTracksBar::showAllWanted);
  useMessageGround(*this, theme);
  hide();
}

/// "1 track, kernels hidden".
void HiddenTracksBar::follow(const ArrangedTracks& tracks) {
  QStringList parts;
  if (const int numTracks = tracks.numHiddenTracks(); numTracks > 0)
    parts.append(counted(numTracks, tr("track"), tr("tracks")));
  for (const TimelineRowKind kind : tracks.hiddenRows()) parts.append(nameOf(kind));
  m_label->setText(tr("%1 hidden").arg(parts.join(QStringLiteral(", "))));
  setVisible(!parts.isEmpty());
}

}  // namespace fuseline::ui
