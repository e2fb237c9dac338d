// TextDialog: a text to read and to copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>
#include <QString>

namespace fuseline::ui {

class TextDialog : public QDialog {
  Q_OBJECT

 public:
  /// introduction: above the text, as HTML; empty: none.
  TextDialog(const QString& title, const QString& introduction, const QString& text, QWidget* parent);
};

}  // namespace fuseline::ui
