// Asks how runs are measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_spec.h"

#include <QDialog>
#include <QFormLayout>

#include <functional>
#include <vector>

namespace fuseline::ui {

/// A row for each field of a run that has a label; the others stay as they were proposed.
class RunOptionsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit RunOptionsDialog(const RunSpec& proposed, QWidget* parent = nullptr);

  RunSpec options() const;

 private:
  struct Editor {
    std::function<void(const RunSpec&)> show;
    std::function<void(RunSpec&)> take;
  };

  void addEditor(const SpecField& field);
  Editor checkBox(const SpecField& field, bool RunSpec::*member);
  Editor spinBox(const SpecField& field, int RunSpec::*member);
  Editor comboBox(const SpecField& field);
  Editor wordsEdit(const SpecField& field, NamedTextList RunSpec::*member);
  Editor lineEdit(const SpecField& field);
  void addRow(const SpecField& field, QWidget& widget);
  void addButtons();
  void show(const RunSpec& options);

  RunSpec m_proposed;
  QFormLayout* m_form;
  std::vector<Editor> m_editors;
};

}  // namespace fuseline::ui
