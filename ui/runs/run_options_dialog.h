// Asks how runs are measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/run_options.h"

#include <QCheckBox>
#include <QDialog>
#include <QLineEdit>
#include <QSpinBox>

namespace fuseline::ui {

class RunOptionsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit RunOptionsDialog(const RunOptions& proposed, QWidget* parent = nullptr);

  RunOptions options() const;

 private:
  void createFields();
  void show(const RunOptions& options);

  QSpinBox* m_iterations = nullptr;
  QSpinBox* m_warmup = nullptr;
  QLineEdit* m_seed = nullptr;
  QCheckBox* m_replays = nullptr;
  QCheckBox* m_startsCold = nullptr;
};

}  // namespace fuseline::ui
