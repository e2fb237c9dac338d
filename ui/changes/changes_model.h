// ChangesModel: what is not as in the base, grouped: changes of the document, then of the plan, then its figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_comparison.h"
#include "ui/session/pipeline_comparison.h"
#include "ui/theme/theme.h"

#include <QStandardItemModel>

namespace fuseline::ui {

/// The color of a kind of change, on the canvas and in the list; a sign and a word say the same.
QColor changeColor(const ThemeColors& colors, DocumentChange::Kind kind);
/// "+", "−", "~", ">".
QString changeSign(DocumentChange::Kind kind);

/// Result of runs of both pipelines, measured interleaved.
struct MeasuredChange {
  RunComparison comparison;
  const RunRecord* base;
  const RunRecord* next;
};

class ChangesModel : public QStandardItemModel {
  Q_OBJECT

 public:
  enum Column { WhatColumn, KindColumn, DetailsColumn, ColumnCount };
  enum Role {
    /// Index of a change of the document; -1 for derived changes of the plan.
    ChangeRole = Qt::UserRole + 1,
    /// Ids of the nodes that a row is about, as they are called now. Those that are gone are not there.
    NodesRole,
    /// Key of the row that stays the same after another comparison.
    KeyRole
  };
  explicit ChangesModel(QObject* parent = nullptr);

  /// measured: result of both pipelines, measured interleaved; nullptr if they were not measured.
  void show(const ComparisonResult& result, const MeasuredChange* measured, const Theme& theme);

  /// Rows that are about one thing, without headings and without figures, in order, at their first column.
  QList<QModelIndex> changeRows() const;
  /// Invalid: there is none.
  QModelIndex rowOfChange(int change) const;
  QModelIndex rowOfKey(const QString& key) const;

 private:
  void addDocumentChanges(const ComparisonResult& result, const ThemeColors& colors);
  void addPlanChanges(const ComparisonResult& result, const ThemeColors& colors);
  void addFigures(const PipelineDifference& difference, const ThemeColors& colors);
  void addMeasured(const MeasuredChange& measured, const PipelineDocument& document, const ThemeColors& colors);
  QStandardItem* addGroup(const QString& title);
};

/// "3 ops added, 1 removed, 2 changed; 1 other change; fused: 5 launches instead of 8, peak memory 49 MiB instead of
/// 52 MiB."
QString comparisonText(const ComparisonResult& result);

}  // namespace fuseline::ui
