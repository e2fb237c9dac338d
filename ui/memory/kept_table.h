// KeptTable: what each op makes forward keep for backward, in both plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/memory/memory_plot.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QStandardItemModel>
#include <QTreeView>

#include <vector>

namespace fuseline::ui {

/// A row an op, with a bar for its bytes; its tensors beneath. The current row is the selected op; Ctrl+C copies all.
class KeptTable : public QTreeView {
  Q_OBJECT

 public:
  enum Column { NameColumn, UnfusedColumn, FusedColumn, SpecColumn, LifetimeColumn };
  /// OwnerRole: the owner in the document of an op's row. ShareRole: bytes of a cell relative to the largest.
  enum Role { OwnerRole = Qt::UserRole + 1, ShareRole };

  KeptTable(Session& session, const Theme& theme, QWidget* parent = nullptr);

  void setGroups(const std::vector<KeptGroup>& groups);

 protected:
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

 private:
  void followSelection();

  Session& m_session;
  QStandardItemModel* m_model;
  bool m_isFollowing = false;
};

}  // namespace fuseline::ui
