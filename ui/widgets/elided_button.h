// ElidedButton: a push button that gives way: its text ends with "..." where there is no room, its tooltip has all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QPushButton>

namespace fuseline::ui {

class ElidedButton : public QPushButton {
  Q_OBJECT

 public:
  explicit ElidedButton(const QString& text, QWidget* parent = nullptr);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace fuseline::ui
