// FileSettings: what is kept in the user's settings of each of the last files, and not in the files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QVariant>

#include <utility>

namespace fuseline::ui {

/// Settings of the last 50 files.
class FileSettings {
 public:
  /// A list of maps {"path": ..., member: ...} under this key, the last one first.
  FileSettings(QString key, QString member) : m_key(std::move(key)), m_member(std::move(member)) {}

  /// Invalid: there is nothing of this file.
  QVariant of(const QString& path) const;
  /// An invalid value forgets the file.
  void set(const QString& path, const QVariant& value) const;

 private:
  QString m_key, m_member;
};

}  // namespace fuseline::ui
