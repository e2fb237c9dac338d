// TensorPanel: looks at the tensors of one run, number by number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/capturable_tensors.h"
#include "ui/numerics/tensor_table.h"
#include "ui/session/session.h"

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include <memory>
#include <string>
#include <vector>

namespace fuseline::ui {

/// Shows the tensors of the selected op, or all.
class TensorPanel : public QWidget {
  Q_OBJECT

 public:
  TensorPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Shows a tensor by its name, and captures it unless that was done.
  void lookAt(const QString& tensor);
  /// The same of what the selected op makes.
  void lookAtSelected();

  TensorTable& table() const { return *m_table; }
  QComboBox* plans() const { return m_plan; }
  QComboBox* tensors() const { return m_tensor; }
  QString caption() const { return m_caption->text(); }
  /// The shown tensor, as .npy or safetensors by the ending. Errors: there is none, or it cannot be written.
  Result<void> save(const QString& path) const;

 Q_SIGNALS:
  void message(const QString& sentence);

 protected:
  /// Updates when it becomes visible; a hidden pane is not updated.
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* createChoice();
  QWidget* createHint();
  void connectSession();
  void refresh();
  void listAll();
  void fillTensors();
  void refreshCapture();
  void showChosen();
  QString hintFor(const CapturableTensor* chosen) const;
  void refreshCaption();
  void capture();
  void choose(const std::string& tensor);
  void captureUnlessShown();
  void saveAs();
  PlanChoice plan() const;
  const Plan* chosenPlan() const;
  bool isInScope(const CapturableTensor& tensor) const;
  const CapturableTensor* chosen() const;
  const TensorSummary* shown() const;
  std::vector<std::string> namesToCapture() const;
  QString sizeOf(const std::vector<std::string>& names) const;
  QString statisticsText(const TensorStatistics& statistics) const;
  QString strong(const QString& text) const;

  Session& m_session;
  const Theme& m_theme;
  QComboBox* m_plan;
  QComboBox* m_tensor;
  QPushButton* m_capture;
  QLabel* m_size;
  QLabel* m_caption;
  TensorTable* m_table;
  QWidget* m_hintArea = nullptr;
  QLabel* m_hint;
  QPushButton* m_unfused;
  std::shared_ptr<const Analysis> m_analysis;  // that m_all is of
  std::vector<CapturableTensor> m_all;         // of the chosen plan
  std::vector<CapturableTensor> m_listed;      // in the order of m_tensor
};

}  // namespace fuseline::ui
