// Keeps places of the canvas by file.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/view_memory.h"

#include "ui/session/file_settings.h"

namespace fuseline::ui {

namespace {

FileSettings settings() { return {QStringLiteral("view/places"), QStringLiteral("place")}; }

}  // namespace

ViewMemory::ViewMemory(Session& session, GraphView& view, QObject* parent)
    : QObject(parent), m_session(session), m_view(view), m_path(session.pipeline().path()) {
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &ViewMemory::follow);
  // It may have been saved. Queued: of another document this signal comes first.
  connect(
      &session.pipeline(), &OpenPipeline::changed, this, [this] { m_path = m_session.pipeline().path(); },
      Qt::QueuedConnection);
}

void ViewMemory::remember() {
  if (m_path.isEmpty()) return;
  const std::optional<ViewPlace> place = m_view.camera().pipelinePlace();
  const auto& [middle, zoom] = place.value_or(ViewPlace());
  settings().set(m_path, place ? QVariant(QVariantList{middle.x(), middle.y(), zoom}) : QVariant());
}

/// The canvas still shows the place of the document before; it moves when the new one is analysed.
void ViewMemory::follow() {
  remember();
  m_path = m_session.pipeline().path();
  m_view.camera().setFirstPlace(placeOf(m_path));
}

/// Settings may have been written by hand: what is no place is none.
std::optional<ViewPlace> ViewMemory::placeOf(const QString& path) const {
  const QVariantList values = path.isEmpty() ? QVariantList() : settings().of(path).toList();
  if (values.size() != 3 || values[2].toDouble() <= 0.0) return std::nullopt;
  return ViewPlace{{values[0].toDouble(), values[1].toDouble()}, values[2].toDouble()};
}

}  // namespace fuseline::ui
