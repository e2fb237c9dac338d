// Rows of the history.
// SPDX-License-Identifier: Apache-2.0
#include "ui/changes/history_model.h"

#include "ui/theme/format.h"

#include <QFont>

#include <algorithm>

namespace fuseline::ui {

HistoryModel::HistoryModel(const Session& session, const Theme& theme, QObject* parent)
    : QAbstractListModel(parent), m_session(session), m_theme(theme), m_size(session.pipeline().history().size()) {
  for (const auto signal : {&OpenPipeline::changed, &OpenPipeline::replaced})
    connect(&session.pipeline(), signal, this, &HistoryModel::follow);
  connect(&theme, &Theme::changed, this, &HistoryModel::follow);
}

/// While a field is typed into or a node is dragged, only the look of rows can change.
void HistoryModel::follow() {
  if (m_size != m_session.pipeline().history().size()) {
    beginResetModel();
    m_size = m_session.pipeline().history().size();
    endResetModel();
  } else {
    Q_EMIT dataChanged(index(0), index(rowCount() - 1));
  }
}

int HistoryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_size) + 1;
}

std::size_t HistoryModel::depthOf(const QModelIndex& index) const {
  return m_size - static_cast<std::size_t>(index.row());
}

QModelIndex HistoryModel::currentState() const {
  return index(static_cast<int>(m_size - std::min(m_size, m_session.pipeline().history().depth())));
}

QString HistoryModel::labelOf(std::size_t depth) const {
  return depth == 0 ? tr("Opened") : toQt(m_session.pipeline().history().label(depth - 1));
}

/// "now, saved".
QString HistoryModel::stateOf(std::size_t depth) const {
  const History& history = m_session.pipeline().history();
  QStringList parts;
  if (depth == history.depth()) parts.append(tr("now"));
  if (depth > history.depth()) parts.append(tr("undone"));
  if (history.savedDepth() == depth && !m_session.pipeline().path().isEmpty()) parts.append(tr("saved"));
  return parts.join(QStringLiteral(", "));
}

QVariant HistoryModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const std::size_t depth = depthOf(index);
  if (depth > m_session.pipeline().history().size()) return {};  // while others are told of a change before this is
  const bool isUndone = depth > m_session.pipeline().history().depth();
  const QString state = stateOf(depth);
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
    case Qt::AccessibleTextRole:
      return state.isEmpty() ? labelOf(depth) : QStringLiteral("%1 · %2").arg(labelOf(depth), state);
    case Qt::ForegroundRole: return isUndone ? QVariant(m_theme.colors().dimText) : QVariant();
    case Qt::FontRole: {
      QFont font;
      font.setBold(depth == m_session.pipeline().history().depth());
      font.setItalic(isUndone);
      return font;
    }
    default: return {};
  }
}

}  // namespace fuseline::ui
