// DropOverlay: over the window while files are dragged: the effect of a drop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>

namespace fuseline::ui {

class DropOverlay : public QLabel {
  Q_OBJECT

 public:
  explicit DropOverlay(QWidget& window);
  /// Covers the window until it is hidden.
  void announce(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace fuseline::ui
