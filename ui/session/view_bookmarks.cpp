// Places as they stand in the settings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/view_bookmarks.h"

#include "ui/session/file_settings.h"

namespace fuseline::ui {

namespace {

FileSettings bookmarkSettings() { return {QStringLiteral("viewBookmarks"), QStringLiteral("places")}; }

QVariantList toVariant(const QMap<int, ViewPlace>& places) {
  QVariantList list;
  for (auto place = places.begin(); place != places.end(); ++place)
    list.append(QVariant(QVariantList{place.key(), place->middle.x(), place->middle.y(), place->zoom}));
  return list;
}

/// Settings may have been written by hand: what is no place is left out.
QMap<int, ViewPlace> fromVariant(const QVariant& list) {
  QMap<int, ViewPlace> places;
  for (const QVariant& entry : list.toList()) {
    const QVariantList values = entry.toList();
    if (values.size() != 4) continue;
    const int number = values[0].toInt();
    const ViewPlace place{{values[1].toDouble(), values[2].toDouble()}, values[3].toDouble()};
    if (number >= 1 && number <= kMaxBookmarks && place.zoom > 0) places[number] = place;
  }
  return places;
}

}  // namespace

void ViewBookmarks::open(const QString& path) {
  m_path = path;
  m_places.clear();
  if (!m_isKept || path.isEmpty()) return;
  m_places = fromVariant(bookmarkSettings().of(path));
}

void ViewBookmarks::follow(const QString& path) {
  if (path == m_path) return;
  m_path = path;
  keep();
}

void ViewBookmarks::set(int number, const ViewPlace& place) {
  m_places[number] = place;
  keep();
}

std::optional<ViewPlace> ViewBookmarks::at(int number) const {
  const auto found = m_places.find(number);
  return found == m_places.end() ? std::nullopt : std::optional(*found);
}

void ViewBookmarks::keep() const {
  if (!m_isKept || m_path.isEmpty() || m_places.isEmpty()) return;
  bookmarkSettings().set(m_path, toVariant(m_places));
}

}  // namespace fuseline::ui
