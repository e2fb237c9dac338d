// NumericsModel: one row a tensor: how far it is from float32, and its fused value from its unfused one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"

#include <QAbstractTableModel>
#include <QString>

#include <map>
#include <optional>
#include <vector>

namespace fuseline::ui {

/// The error of each document op: the largest rms error of what its steps make. Ops without an error are left out.
std::map<std::string, double> errorsByOwner(const NumericsReport& report);

/// The smallest error that has a color of its own.
inline constexpr double kCoolestError = 1e-4;

/// Where an rms error stands between that, 0, and 1, 1, on a logarithmic scale: the same for all pipelines.
double heatShare(double rmsError);

/// "0.38 %"; "exact" for 0.
QString formatError(double rmsError);

/// "pass 0.12", "FAIL 1.4": how much of its tolerance an error takes; words as the command line has them.
QString verdictText(const ErrorNumerics& error);

class NumericsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { TensorColumn, RmsColumn, MaxColumn, CosineColumn, UlpColumn, VerdictColumn, FusedColumn, ColumnCount };
  enum Role {
    OwnerRole = Qt::UserRole + 1,  // the document's op
    SortRole,                      // a number or a text
    HeatRole,                      // heatShare() of the row; in RmsColumn only
    IsWithinRole                   // of what a column with a verdict is about: is the error within its tolerance?
  };
  using QAbstractTableModel::QAbstractTableModel;

  void setReport(const NumericsReport& report);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    ErrorNumerics error;
    std::optional<ErrorNumerics> fusion;
  };
  /// Errors that a verdict judges; nullptr if the column has none.
  static const ErrorNumerics* judgedIn(const Row& row, int column);
  QString text(const Row& row, int column) const;
  QVariant sortKey(const Row& row, int column) const;
  QString tip(const Row& row) const;

  std::vector<Row> m_rows;
};

}  // namespace fuseline::ui
