// HiddenTracksBar: says that tracks or rows of the timeline are hidden, and shows them again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/arranged_tracks.h"

#include <QLabel>
#include <QWidget>

namespace fuseline::ui {

/// Only there while something is hidden.
class HiddenTracksBar : public QWidget {
  Q_OBJECT

 public:
  explicit HiddenTracksBar(const Theme& theme, QWidget* parent = nullptr);
  void follow(const ArrangedTracks& tracks);
  QString text() const { return m_label->text(); }

 Q_SIGNALS:
  void showAllWanted();

 private:
  QLabel* m_label;
};

}  // namespace fuseline::ui
