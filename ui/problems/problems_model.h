// ProblemsModel: the problems of the document, worst first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>

#include <vector>

namespace fuseline::ui {

/// Problems that say the same about the same node stand there once. Errors first.
std::vector<Diagnostic> mergedProblems(const std::vector<Diagnostic>& fromFile,
                                       const std::vector<Diagnostic>& fromAnalysis);

/// In the color of its severity.
QIcon severityIcon(const Theme& theme, Severity severity);

class ProblemsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { PlaceColumn, MessageColumn, ColumnCount };
  explicit ProblemsModel(const Theme& theme, QObject* parent = nullptr);

  /// Shows them merged.
  void setProblems(const std::vector<Diagnostic>& fromFile, const std::vector<Diagnostic>& fromAnalysis);
  const std::vector<Diagnostic>& problems() const { return m_problems; }
  int count(Severity severity) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  const Theme& m_theme;
  std::vector<Diagnostic> m_problems;
};

}  // namespace fuseline::ui
