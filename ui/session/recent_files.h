// RecentFiles: the files that were opened or saved last, kept in the user's settings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QStringList>

namespace fuseline::ui {

class RecentFiles {
 public:
  /// isKept: whether anything is read from the settings, or written there.
  explicit RecentFiles(bool isKept) : m_isKept(isKept) {}

  /// Whole paths, the last one first.
  QStringList paths() const;
  void add(const QString& path);
  void clear();

 private:
  bool m_isKept;
};

}  // namespace fuseline::ui
