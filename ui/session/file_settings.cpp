// A list in the settings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/file_settings.h"

#include <QSettings>

namespace fuseline::ui {

namespace {

constexpr int kMaxFiles = 50;

QString pathOf(const QVariant& file) { return file.toMap().value(QStringLiteral("path")).toString(); }

}  // namespace

QVariant FileSettings::of(const QString& path) const {
  for (const QVariant& file : QSettings().value(m_key).toList())
    if (pathOf(file) == path) return file.toMap().value(m_member);
  return {};
}

void FileSettings::set(const QString& path, const QVariant& value) const {
  QVariantList files = QSettings().value(m_key).toList();
  files.removeIf([&](const QVariant& file) { return pathOf(file) == path; });
  if (value.isValid()) files.prepend(QVariantMap{{QStringLiteral("path"), path}, {m_member, value}});
  QSettings().setValue(m_key, files.mid(0, kMaxFiles));
}

}  // namespace fuseline::ui
