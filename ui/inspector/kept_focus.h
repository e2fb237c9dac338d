// KeptFocus: which field of a page has the keyboard, so that the page that replaces it can have it in the same one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QWidget>

namespace fuseline::ui {

class KeptFocus {
 public:
  /// page: nullptr, or a page without the focus, keeps nothing.
  explicit KeptFocus(const QWidget* page);
  /// To the field with the same name, else to the one at the same place in the order of fields.
  void giveTo(QWidget& page) const;

 private:
  QString m_name;
  qsizetype m_sameBefore = 0;  // fields with the same name that come before it
  qsizetype m_index = -1;      // among all fields; -1: nothing is kept
  int m_cursor = 0;            // of a text field
};

}  // namespace fuseline::ui
