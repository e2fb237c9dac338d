// PaneHead: the caption of a pane and its controls: beside it or, where it would be squeezed, below it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QBoxLayout>
#include <QLabel>
#include <QWidget>

namespace fuseline::ui {

class PaneHead : public QWidget {
  Q_OBJECT

 public:
  PaneHead(QLabel& caption, QWidget* parent);
  /// Right of the other controls.
  void add(QWidget& control);

 protected:
  bool event(QEvent* event) override;

 private:
  void arrange();

  QBoxLayout* m_layout;
  QHBoxLayout* m_controls;
};

}  // namespace fuseline::ui
