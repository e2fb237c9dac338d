// ViewBookmarks: places on the canvas under the numbers 1 to 9, kept for each document in the user's settings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/view_place.h"

#include <QMap>
#include <QString>
#include <QVariantMap>

#include <optional>

namespace fuseline::ui {

inline constexpr int kMaxBookmarks = 9;

class ViewBookmarks {
 public:
  /// isKept: whether anything is read from the settings, or written there. Those of a document in no file are not.
  explicit ViewBookmarks(bool isKept) : m_isKept(isKept) {}

  /// Another document: its file, or nothing for one that has none. Its bookmarks are those that were kept.
  void open(const QString& path);
  /// The document is in this file now, and its bookmarks with it.
  void follow(const QString& path);
  /// number: from 1 to kMaxBookmarks.
  void set(int number, const ViewPlace& place);
  std::optional<ViewPlace> at(int number) const;

 private:
  void keep() const;

  bool m_isKept;
  QString m_path;
  QMap<int, ViewPlace> m_places;
};

}  // namespace fuseline::ui
