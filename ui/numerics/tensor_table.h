// TensorTable: the numbers of a tensor with their histogram, and the tools that find and take some of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/numerics/histogram_view.h"
#include "ui/numerics/tensor_model.h"

#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLayout>
#include <QSpinBox>
#include <QTableView>
#include <QWidget>

#include <cstdint>
#include <functional>
#include <memory>

namespace fuseline::ui {

class TensorTable : public QWidget {
  Q_OBJECT

 public:
  TensorTable(const Theme& theme, QWidget* parent);

  /// Shows a tensor; another capture of the same tensor keeps the scroll position.
  void setTensor(const TensorSummary& summary, const std::shared_ptr<const CapturedFile>& file);
  void clear();
  const TensorModel& model() const { return *m_model; }
  QTableView* view() const { return m_view; }
  /// The selected cells with tabs between them.
  QString asText() const;
  void goToNextNonFinite();
  void goToLargest();

 Q_SIGNALS:
  void message(const QString& sentence);
  /// The user wants the whole tensor in a file.
  void saveWanted();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* createContent();
  QWidget* createTools();
  QAction* addTool(QLayout& row, const QString& text, const QString& tip, const QKeySequence& key,
                   std::function<void()> run);
  QSpinBox* addPlace(QLayout& row, const QString& text);
  void goTo(std::int64_t element);
  void goToTyped();
  void followCell();
  void copy();

  TensorModel* m_model;
  QTableView* m_view;
  HistogramView* m_histogram;
  QSpinBox* m_row = nullptr;
  QSpinBox* m_column = nullptr;
  QLabel* m_place;
  QComboBox* m_shading;
  QAction* m_copy = nullptr;
  std::int64_t m_largestAt = -1;  // of the shown tensor; -1: nowhere
  bool m_isSyncing = false;
};

}  // namespace fuseline::ui
