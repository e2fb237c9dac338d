// OverridesModel: the overrides of the document's recipe as an editable table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QAbstractTableModel>
#include <QStringList>

namespace fuseline::ui {

/// Rows show what the document says, valid or not. Every change is one undo step.
class OverridesModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { OpColumn, TensorColumn, GemmColumn, QuantizerColumn, NumColumns };

  explicit OverridesModel(Session& session, QObject* parent = nullptr);
  /// Takes over what the document says.
  void refresh();

  /// Valid values of a cell in this column; others can be typed if isFree().
  QStringList choices(int column) const;
  static bool isFree(int column) { return column == OpColumn || column == QuantizerColumn; }

  void add();
  void remove(int row);
  /// Changes places with the row above (-1) or below (1). Returns whether there is one.
  bool move(int row, int by);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex&) const override { return NumColumns; }
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString cellText(const Json& special, int column) const;
  /// Errors: a quantizer that cannot be read.
  Result<Json> changed(Json special, int column, const QString& text) const;
  bool apply(const QString& label, Json overrides);

  Session& m_session;
  Json m_overrides = Json::array();
};

}  // namespace fuseline::ui
