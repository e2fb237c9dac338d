// SearchPopup: type to find an op and insert it, at the pointer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/op_search.h"

#include <QFrame>
#include <QLineEdit>
#include <QListWidget>

#include <vector>

namespace fuseline::ui {

/// Deletes itself when it closes.
class SearchPopup : public QFrame {
  Q_OBJECT

 public:
  /// Offers every op of the library, and these blocks.
  SearchPopup(std::vector<PaletteEntry> blocks, QWidget* parent);
  void openAt(QPoint screenPosition);

 Q_SIGNALS:
  void chosen(const QString& entry);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void accept();
  std::vector<PaletteEntry> m_blocks;
  QLineEdit* m_query;
  QListWidget* m_list;
};

}  // namespace fuseline::ui
