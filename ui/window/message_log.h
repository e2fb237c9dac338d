// MessageLog: what the window said, with its time, the last line last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>
#include <QDateTime>

#include <deque>

namespace fuseline::ui {

class MessageLog : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { TimeColumn, MessageColumn, ColumnCount };
  /// Older lines are dropped.
  static constexpr int kMostLines = 1000;

  explicit MessageLog(const Theme& theme, QObject* parent = nullptr);

  /// Handling of a message that repeats the last line.
  enum class Repeated { LeftOut, Kept };
  void add(Severity severity, const QString& sentence, Repeated repeated = Repeated::LeftOut);
  void clear();
  const QString& sentence(int row) const { return m_lines[static_cast<std::size_t>(row)].sentence; }
  /// "2026-01-31 12:00:00  error  ...", a line each.
  QString asText() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  struct Line {
    QDateTime time;
    Severity severity = Severity::Note;
    QString sentence;
  };
  QString textOf(const Line& line) const;

  const Theme& m_theme;
  std::deque<Line> m_lines;
};

}  // namespace fuseline::ui
