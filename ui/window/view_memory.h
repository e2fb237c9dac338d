// ViewMemory: which part of a file's canvas was in sight, to be shown again when the file is opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/session/session.h"

#include <QObject>
#include <QPointF>
#include <QString>

#include <optional>

namespace fuseline::ui {

/// In the user's settings, not in the file: of the last 50 files. Where everything is in sight nothing is remembered.
class ViewMemory : public QObject {
  Q_OBJECT

 public:
  ViewMemory(Session& session, GraphView& view, QObject* parent);

  /// Remembers the current view before the program ends. Opening another file does so automatically.
  void remember();

 private:
  void follow();
  std::optional<ViewPlace> placeOf(const QString& path) const;

  Session& m_session;
  GraphView& m_view;
  QString m_path;  // of the file in sight; empty: none
};

}  // namespace fuseline::ui
