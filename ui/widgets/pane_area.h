// PaneArea: a pane that scrolls where it has less room than it needs at least.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QScrollArea>

namespace fuseline::ui {

/// QScrollArea gives a widget whose height depends on its width the height that it would like to have: a table then
/// pushes what is below it out of sight.
class PaneArea : public QScrollArea {
  Q_OBJECT

 public:
  explicit PaneArea(QWidget& pane);
  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  void fit();
};

}  // namespace fuseline::ui
