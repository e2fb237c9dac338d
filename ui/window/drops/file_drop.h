// FileDrop: files that are dragged over a window: it says what a drop does, and reports the drop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/drops/dragged_files.h"
#include "ui/window/drops/drop_overlay.h"

#include <QDropEvent>
#include <QObject>

namespace fuseline::ui {

class FileDrop : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does.
  explicit FileDrop(QWidget& window);

 Q_SIGNALS:
  void openWanted(const QStringList& files);
  void compareWanted(const QString& file);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  DropEffect effectOf(const QDropEvent& event) const;
  bool announce(QDropEvent& event);
  bool drop(QDropEvent& event);

  DropOverlay* m_overlay;
  QStringList m_files;
};

}  // namespace fuseline::ui
