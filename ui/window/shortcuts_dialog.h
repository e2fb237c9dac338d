// ShortcutsDialog: the commands with their keys, which can be changed, and the keys of the panes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/shortcuts.h"

#include <QDialog>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>

namespace fuseline::ui {

class ShortcutsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit ShortcutsDialog(Shortcuts& shortcuts, QWidget* parent = nullptr);

  QTreeWidget& list() { return *m_list; }
  QLineEdit& filter() { return *m_filter; }
  QKeySequenceEdit& keys() { return *m_keys; }
  QString remark() const { return m_remark->text(); }
  QPushButton& assignButton() { return *m_assign; }

 private:
  QWidget* makeCommands();
  QLayout* makeEditor();
  void fill();
  void applyFilter();
  void showCurrent();
  void showRemark();
  void assign();
  const Shortcuts::Command* current() const;

  Shortcuts& m_shortcuts;
  QLineEdit* m_filter;
  QTreeWidget* m_list;
  QKeySequenceEdit* m_keys;
  QLabel* m_remark;
  QPushButton* m_assign;
  QPushButton* m_reset;
};

}  // namespace fuseline::ui
