// ElidedLabel: one line of plain text that ends with "..." where there is no room; its tooltip has all of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>

namespace fuseline::ui {

class ElidedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit ElidedLabel(QWidget* parent = nullptr);
  /// The tooltip, too.
  void setWholeText(const QString& text);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace fuseline::ui
