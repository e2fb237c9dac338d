// Keeps places of the canvas by file.
// SPDX-License-Identifier: Apache-2.0
#include "ui/view_memory.h"

#include <QSettings>
#include <QVariantMap>

namespace fuseline::ui {

namespace {

constexpr int kMostFiles = 50;
constexpr auto kKey = "view/places";

/// The last one first.
QVariantList entries() { return QSettings().value(kKey).toList(); }

}  // namespace

ViewMemory::ViewMemory(Session& session, GraphView& view, QObject* parent)
    : QObject(parent), m_session(session), m_view(view), m_path(session.path()) {
  connect(&session, &Session::documentReplaced, this, &ViewMemory::follow);
  // It may have been saved. Queued: of another document this signal comes first.
  connect(
      &session, &Session::documentChanged, this, [this] { m_path = m_session.path(); }, Qt::QueuedConnection);
}

void ViewMemory::remember() {
  if (m_path.isEmpty()) return;
  QVariantList kept = entries();
  kept.removeIf([this](const QVariant& entry) { return entry.toMap().value("file").toString() == m_path; });
  if (const auto place = m_view.place())
    kept.prepend(
        QVariantMap{{"file", m_path}, {"x", place->middle.x()}, {"y", place->middle.y()}, {"zoom", place->zoom}});
  QSettings().setValue(kKey, kept.mid(0, kMostFiles));
}

/// The canvas still shows the place of the document before; it moves when the new one is analysed.
void ViewMemory::follow() {
  remember();
  m_path = m_session.path();
  m_view.setFirstPlace(placeOf(m_path));
}

std::optional<ViewPlace> ViewMemory::placeOf(const QString& path) const {
  if (path.isEmpty()) return std::nullopt;
  for (const QVariant& entry : entries()) {
    const QVariantMap place = entry.toMap();
    if (place.value("file").toString() != path) continue;
    const ViewPlace found{{place.value("x").toDouble(), place.value("y").toDouble()}, place.value("zoom").toDouble()};
    return found.zoom > 0.0 ? std::optional(found) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace fuseline::ui
