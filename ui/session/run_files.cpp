// Detects the kind of a file by its name and its first bytes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/run_files.h"

#include "core/profile/run_file.h"

#include <QFileInfo>

namespace fuseline::ui {

bool isRunFile(const QString& path) {
  const QString ending = QFileInfo(path).suffix().toLower();
  return ending == QStringLiteral("fuserun") || ending == QStringLiteral("html") || holdsRun(path.toStdString());
}

}  // namespace fuseline::ui
