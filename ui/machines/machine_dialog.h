// Add a machine: its host, a test of the connection with the reason in words, and its devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/machines/machines.h"

#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProcess>
#include <QPushButton>

namespace fuseline::ui {

/// Only a machine that was reached is added. The first test of a machine copies the program there.
class MachineDialog : public QDialog {
  Q_OBJECT

 public:
  explicit MachineDialog(Machines& machines, QWidget* parent = nullptr);

  QLineEdit& host() { return *m_host; }
  QPushButton& test() { return *m_test; }
  QPushButton& addButton() { return *m_add; }
  QListWidget& devices() { return *m_devices; }

 private:
  void assemble();
  void forgetTest();
  void testOrStop();
  void finishTest(int exitCode);
  void show(const Json& devices);
  void add();

  Machines& m_machines;
  QLineEdit* m_host;
  QPushButton* m_test;
  QLabel* m_status;
  QListWidget* m_devices;
  QPushButton* m_add;
  QProcess* m_process;
  Json m_found;  // devices of the tested host; null: not tested
};

}  // namespace fuseline::ui
