// A list in the settings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace fuseline::ui {

namespace {
constexpr int kMaxRecent = 10;
constexpr auto kKey = "recentFiles";
}  // namespace

QStringList RecentFiles::paths() const { return m_isKept ? QSettings().value(kKey).toStringList() : QStringList(); }

void RecentFiles::add(const QString& path) {
  if (!m_isKept) return;
  const QString whole = QFileInfo(path).absoluteFilePath();
  QStringList recent = paths();
  recent.removeAll(whole);
  recent.prepend(whole);
  QSettings().setValue(kKey, recent.mid(0, kMaxRecent));
}

void RecentFiles::clear() {
  if (m_isKept) QSettings().remove(kKey);
}

}  // namespace fuseline::ui
