// SearchPopup: type to find an op and insert it, at the pointer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QFrame>
#include <QLineEdit>
#include <QListWidget>

namespace fuseline::ui {

/// Deletes itself when it closes.
class SearchPopup : public QFrame {
  Q_OBJECT

 public:
  explicit SearchPopup(QWidget* parent);
  void openAt(QPoint screenPosition);

 Q_SIGNALS:
  void chosen(const QString& entry);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void accept();
  QLineEdit* m_query;
  QListWidget* m_list;
};

}  // namespace fuseline::ui
