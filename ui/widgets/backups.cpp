// The file before last is lost.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/backups.h"

#include <QFile>
#include <QSettings>

namespace fuseline::ui {

namespace {

constexpr auto kKey = "files/keepsBackups";

}  // namespace

Backups::Backups(bool isKept) : m_isKept(isKept), m_isOn(isKept && QSettings().value(kKey, false).toBool()) {}

void Backups::setOn(bool isOn) {
  m_isOn = isOn;
  if (m_isKept) QSettings().setValue(kKey, isOn);
}

bool Backups::keep(const QString& path) const {
  if (!m_isOn || !QFile::exists(path)) return true;
  const QString backup = path + u'~';
  QFile::remove(backup);
  return QFile::copy(path, backup);
}

}  // namespace fuseline::ui
