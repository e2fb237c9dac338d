// HistoryModel: what was done to the pipeline, the newest first, for a list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QAbstractListModel>

#include <cstddef>

namespace fuseline::ui {

/// A row for each state that the pipeline can be taken to: after each edit, and at last the one before all of them.
class HistoryModel : public QAbstractListModel {
  Q_OBJECT

 public:
  HistoryModel(const Session& session, const Theme& theme, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  std::size_t depthOf(const QModelIndex& index) const;
  /// Row of the current state of the pipeline.
  QModelIndex currentState() const;

 private:
  void follow();
  QString labelOf(std::size_t depth) const;
  QString stateOf(std::size_t depth) const;

  const Session& m_session;
  const Theme& m_theme;
  std::size_t m_size = 0;
};

}  // namespace fuseline::ui
