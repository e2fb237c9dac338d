// Lines of a log as rows.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/message_log.h"

#include "ui/problems/problems_model.h"
#include "ui/theme/format.h"

namespace fuseline::ui {

MessageLog::MessageLog(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {}

void MessageLog::add(Severity severity, const QString& sentence, Repeated repeated) {
  if (repeated == Repeated::LeftOut && !m_lines.empty() && m_lines.back().sentence == sentence) return;
  if (rowCount() == kMostLines) {
    beginRemoveRows({}, 0, 0);
    m_lines.pop_front();
    endRemoveRows();
  }
  beginInsertRows({}, rowCount(), rowCount());
  m_lines.push_back({QDateTime::currentDateTime(), severity, sentence});
  endInsertRows();
}

void MessageLog::clear() {
  beginResetModel();
  m_lines.clear();
  endResetModel();
}

QString MessageLog::textOf(const Line& line) const {
  return QStringLiteral("%1  %2  %3")
      .arg(line.time.toString(QStringLiteral("yyyy-MM-dd HH:mm:ss")), toQt(severityName(line.severity)), line.sentence);
}

QString MessageLog::asText() const {
  QString text;
  for (const Line& line : m_lines) text += textOf(line) + u'\n';
  return text;
}

int MessageLog::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int MessageLog::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant MessageLog::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Line& line = m_lines[static_cast<std::size_t>(index.row())];
  const bool isTime = index.column() == TimeColumn;
  switch (role) {
    case Qt::DisplayRole: return isTime ? line.time.toString(QStringLiteral("HH:mm:ss")) : line.sentence;
    case Qt::ToolTipRole: return isTime ? formatLocalTime(line.time) : line.sentence;
    case Qt::DecorationRole: return isTime ? QVariant(severityIcon(m_theme, line.severity)) : QVariant();
    case Qt::AccessibleTextRole: return textOf(line);
    default: return {};
  }
}

QVariant MessageLog::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == TimeColumn ? tr("Time") : tr("Message");
}

}  // namespace fuseline::ui
