// MeasuredLooks: what was measured, on the nodes that it was measured of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/heat_overlay.h"
#include "ui/canvas/node_look.h"
#include "ui/timings/node_statuses.h"

#include <QList>
#include <QObject>

#include <vector>

namespace fuseline::ui {

class MeasuredLooks : public QObject {
  Q_OBJECT

 public:
  /// Both live as long as this.
  MeasuredLooks(Session& session, const CanvasScope& scope);

  /// To what the document and its analysis say of nodes.
  void addTo(std::vector<NodeLook>& looks) const;
  /// Another one: addTo() may say something else of any node, although changed() was not emitted.
  QList<bool> staleness() const;

  /// Which figure of the last run nodes show.
  HeatOverlay& overlay() { return m_overlay; }
  const HeatOverlay& overlay() const { return m_overlay; }
  /// Whether ops show if they were run, and what came of it. Not unless it is asked for.
  void setStatusesVisible(bool visible);

 Q_SIGNALS:
  /// Nodes are to look otherwise.
  void changed();

 private:
  void addErrors(std::vector<NodeLook>& looks) const;
  void addTensors(std::vector<NodeLook>& looks) const;
  void addStatuses(std::vector<NodeLook>& looks) const;

  Session& m_session;
  const CanvasScope& m_scope;
  NodeStatuses m_statuses;
  HeatOverlay m_overlay;
  bool m_areStatusesVisible = false;
};

}  // namespace fuseline::ui
