// Asks how the canvas is to be drawn into a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/drawing.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>

#include <optional>

namespace fuseline::ui {

class DrawingDialog : public QDialog {
  Q_OBJECT

 public:
  explicit DrawingDialog(const DrawingOptions& proposed, QWidget* parent = nullptr);

  DrawingOptions options() const;

 private:
  void createFields();
  void show(const DrawingOptions& options);
  void refresh();

  QComboBox* m_format = nullptr;
  QComboBox* m_ground = nullptr;
  QComboBox* m_scale = nullptr;
  QCheckBox* m_figures = nullptr;
  QCheckBox* m_pipeline = nullptr;
};

}  // namespace fuseline::ui
