// NumericsPanel: errors against float32, and what quantization does to each tensor, also under other recipes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/numerics/histogram_view.h"
#include "ui/numerics/numerics_model.h"
#include "ui/numerics/recorded_numerics.h"
#include "ui/session/session.h"
#include "ui/timings/run_filter.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class NumericsPanel : public QWidget {
  Q_OBJECT

 public:
  NumericsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Tensors that it keeps are shown; the caption is of all.
  void setFilter(RunFilter& filter);
  const NumericsModel& model() const { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// The quantized copies, and the recipes under which the chosen one can be seen.
  QComboBox* copies() const { return m_copies; }
  QComboBox* recipes() const { return m_recipes; }
  /// Quantization error of the chosen recipe for the chosen tensor.
  QString lossText() const { return m_losses->text(); }
  /// Numerics of an opened run.
  RecordedNumerics& recorded() const { return *m_recorded; }

 Q_SIGNALS:
  /// To be looked at.
  void tensorWanted(const QString& name);

 private:
  QWidget* createErrors();
  void addLookCommand();
  QWidget* createCopies();
  QWidget* createStart();
  void refresh();
  void takeReport();
  void refreshRecorded();
  void refreshCaption();
  void fillCopies();
  void fillRecipes();
  void showCopy();
  void showSelection();
  void chooseCopyOf(const std::string& op);
  void takeSelection();
  const CopyNumerics* chosenCopy() const;
  /// nullptr: what the run itself made.
  const Requantized* chosenRecipe() const;

  Session& m_session;
  RunFilter* m_filter = nullptr;
  NumericsReport m_shown;  // that the filter keeps of the report
  const Theme& m_theme;
  NumericsModel* m_model;
  QSortFilterProxyModel* m_sorted;
  QTreeView* m_view;
  QHBoxLayout* m_head;
  QLabel* m_caption;
  QWidget* m_content;
  QWidget* m_start;
  RecordedNumerics* m_recorded;
  QPushButton* m_measure;
  QComboBox* m_copies;
  QComboBox* m_recipes;
  HistogramView* m_histogram;
  QLabel* m_losses;
  bool m_isSyncing = false;
};

}  // namespace fuseline::ui
