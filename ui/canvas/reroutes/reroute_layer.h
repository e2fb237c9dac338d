// RerouteLayer: the reroute points of the wires that are shown.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/reroutes.h"
#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/link_item.h"
#include "ui/canvas/reroutes/reroute_item.h"

#include <QGraphicsScene>
#include <QObject>
#include <QPointF>

#include <map>
#include <string>
#include <vector>

namespace fuseline::ui {

class RerouteLayer : public QObject {
  Q_OBJECT

 public:
  /// The scene owns the items.
  RerouteLayer(QGraphicsScene& scene, const CanvasScope& scope, const Theme& theme);

  /// As in the document, but for those in the user's hand. Whether a point came, went or stands elsewhere.
  bool sync(const std::vector<LinkItem*>& links);
  /// Where the points of a wire are now, in order; empty: it has none.
  std::vector<QPointF> pointsOf(const Link& link) const;
  const std::vector<RerouteItem*>& items() const { return m_items; }
  const RerouteItem* itemAt(QPointF position) const;
  std::vector<std::string> selected() const;

  /// Adds a point to the wire here.
  Edit addition(const LinkItem& link, QPointF position) const;
  /// Edits for points that were moved from their place in the document.
  std::vector<Edit> moves() const;
  /// Edits that remove the selected points.
  std::vector<Edit> removals() const;

 Q_SIGNALS:
  /// A point is under way.
  void moved();

 private:
  void replaceItems(const std::vector<std::string>& ids);

  QGraphicsScene& m_scene;
  const CanvasScope& m_scope;
  const Theme& m_theme;
  std::vector<RerouteItem*> m_items;  // by wire, and along each
  std::map<std::string, std::vector<RerouteItem*>> m_byWire;
  bool m_isSyncing = false;
};

}  // namespace fuseline::ui
