// Tells files apart by their names; runs also by their first bytes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/drops/dragged_files.h"

#include "ui/session/run_files.h"
#include "ui/widgets/translated.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QUrl>

namespace fuseline::ui {

namespace {

const QString kModelConfig = QStringLiteral("config.json");

/// Empty: there is nothing to open in the folder.
QString fileOfFolder(const QDir& folder) {
  if (folder.exists(kModelConfig)) return folder.filePath(kModelConfig);
  const QStringList runs = folder.entryList({QStringLiteral("*.fuserun")}, QDir::Files | QDir::Readable, QDir::Time);
  return runs.isEmpty() ? QString() : folder.filePath(runs.front());
}

bool isModel(const QFileInfo& file) {
  const QString ending = file.suffix().toLower();
  return ending == QStringLiteral("onnx") || ending == QStringLiteral("py") || file.fileName() == kModelConfig;
}

}  // namespace

QStringList filesIn(const QMimeData& data) {
  QStringList files;
  for (const QUrl& url : data.urls()) {
    const QString path = url.isLocalFile() ? url.toLocalFile() : QString();
    const QString file = !path.isEmpty() && QFileInfo(path).isDir() ? fileOfFolder(QDir(path)) : path;
    if (file.isEmpty()) return {};
    files.append(file);
  }
  return files;
}

QString dropText(const QStringList& files, DropEffect effect) {
  const QFileInfo first(files.front());
  const QString name =
      first.fileName() == kModelConfig ? first.dir().dirName() + u'/' + kModelConfig : first.fileName();
  const QString what = effect == DropEffect::Compare ? translated("Compare with %1")
                       : isModel(first)              ? translated("Import %1")
                       : isRunFile(files.front())    ? translated("Open run %1")
                                                     : translated("Open %1");
  if (effect == DropEffect::Compare) return what.arg(name);
  QStringList lines = {what.arg(name)};
  if (files.size() > 1)
    lines.append(QCoreApplication::translate("Fuseline", "and %n more in windows of their own", nullptr,
                                             static_cast<int>(files.size()) - 1));
  else
    lines.append(translated("Ctrl: compare with it"));
  return lines.join(u'\n');
}

}  // namespace fuseline::ui
