// Reads the one keyword of ssh_config that names hosts.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/ssh_hosts.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>

namespace fuseline::ui {

QStringList hostsIn(const QString& config) {
  static const QRegularExpression kHost(QStringLiteral("^\\s*Host(?:\\s+|\\s*=\\s*)(.+)$"),
                                        QRegularExpression::CaseInsensitiveOption);
  static const QRegularExpression kPattern(QStringLiteral("[*?!]"));
  QStringList hosts;
  for (const QString& line : config.split(u'\n'))
    if (const auto match = kHost.match(line); match.hasMatch())
      for (const QString& name : match.captured(1).simplified().split(u' '))
        if (!name.contains(kPattern) && !hosts.contains(name)) hosts.append(name);
  return hosts;
}

QStringList sshHosts() {
  QFile file(QDir::home().filePath(QStringLiteral(".ssh/config")));
  return file.open(QFile::ReadOnly) ? hostsIn(QString::fromUtf8(file.readAll())) : QStringList();
}

}  // namespace fuseline::ui
