// CanvasItems: the nodes, wires, hulls and borders of the canvas, in step with what is shown of the document.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/incremental/neighborhood.h"
#include "ui/canvas/border_item.h"
#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/hull_item.h"
#include "ui/canvas/link_item.h"
#include "ui/canvas/node_item.h"
#include "ui/canvas/places/node_places.h"
#include "ui/canvas/places/retired_items.h"
#include "ui/canvas/reroutes/reroute_layer.h"
#include "ui/canvas/wire_route.h"
#include "ui/layout/box_index.h"

#include <QGraphicsScene>
#include <QObject>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

class CanvasItems : public QObject {
  Q_OBJECT

 public:
  /// The scene owns the items. All of them live as long as this.
  CanvasItems(QGraphicsScene& scene, Session& session, const CanvasScope& scope, const Theme& theme);

  const std::map<std::string, NodeItem*>& nodes() const { return m_nodes; }
  const std::vector<LinkItem*>& links() const { return m_links; }
  const std::vector<HullItem*>& hulls() const { return m_hulls; }
  const std::vector<BorderItem*>& borders() const { return m_borders; }
  /// Where nodes stand: as in the document, or automatic.
  const std::map<std::string, Position>& positions() const { return m_places.all(); }
  /// Edits that store the automatically computed positions, so that nodes stay in place when others are added.
  std::vector<Edit> missingPlaces() const { return m_places.missing(); }

  NodePositions keptPlaces() const { return m_places.automatic(); }

  NodeItem* node(const std::string& id) const;
  /// The node whose box is here; empty: there is none.
  std::string nodeAt(QPointF position) const;
  LinkItem* linkAt(QPointF position) const;
  /// The hull whose label is here.
  const HullItem* hullAt(QPointF position) const;
  std::optional<PortRef> portNear(QPointF position) const;
  QRectF contentRect() const;
  /// Wires may stick out of that: those that run back, and what they say.
  QRectF wiresRect() const;
  std::vector<std::string> selectedNodes() const;
  std::vector<Link> selectedWires() const;
  /// Facts about the shown nodes, for legends and the minimap.
  struct Shown {
    std::set<DType> dtypes;  // of the tensors at all ports
    bool hasErrors = false;  // does a node show one?
    int revision = 0;        // another number after a sync that changed nodes or hulls
  };
  const Shown& shown() const { return m_shown; }
  RerouteLayer& reroutes() const { return *m_reroutes; }

  HullFilter hullFilter() const { return m_hullFilter; }
  void setHullFilter(HullFilter filter);
  /// Whether hulls show what was measured of their fusions.
  void setSpeedupsVisible(bool visible);
  void setWireLabels(WireLabels labels);
  WireLabels wireLabels() const { return m_wireLabels; }

  /// Looks of all nodes of the document, in its order.
  using Looks = std::vector<const NodeLook*>;
  /// Nodes that are in the user's hand stay where they are.
  void sync(const Looks& looks, const std::function<bool(const NodeItem&)>& isInHand);
  /// The same where only these nodes may look otherwise, and no hull, wire or border does. False: one of them has other
  /// ports than before, or is not shown, and nothing was changed.
  bool syncOnly(const std::vector<NodeLook>& looks);
  /// The same in a large pipeline after an edit that changes these nodes and their wires alone, of which those with a
  /// look are there now: their fusions come with showNeighborhood() or sync(). False: nothing was changed, because
  /// other items change, too.
  bool syncEdited(const FewIds& nodes, const std::vector<NodeLook>& looks);
  /// Fusions and tensors around an edit, ahead of the analysis. looks: of its ops.
  void showNeighborhood(const Neighborhood& part, const std::vector<NodeLook>& looks);
  void removeNodes();
  void syncHulls();
  /// Wires, hulls and borders go where the nodes are.
  void followNodes();
  /// The hull whose ops and rule are selected stands out.
  void markChosenHull();

 private:
  /// Whether a node came, went or has another size.
  bool syncNodes(const Looks& looks);
  void replaceNodes(const Looks& looks);
  /// Whether a wire came, went, or carries another tensor.
  bool syncLinks();
  /// Whether another fusion is shown, or one of them says something else.
  bool syncHullLooks();
  void syncBorders();
  void placeAll();
  void placeLinks();
  void placeBorders();

  QGraphicsScene& m_scene;
  Session& m_session;
  const CanvasScope& m_scope;
  const Theme& m_theme;
  std::map<std::string, NodeItem*> m_nodes;
  std::vector<NodeItem*> m_nodesInOrder;   // of the looks
  std::set<const NodeItem*> m_addedNodes;  // by the last sync
  Shown m_shown;
  NodePlaces m_places;
  const std::unique_ptr<RerouteLayer> m_reroutes;
  std::vector<LinkItem*> m_links;
  WireRoutes m_wires;
  std::vector<HullItem*> m_hulls;
  std::vector<BorderItem*> m_borders;
  RetiredItems m_retired;        // deleted when everything is placed
  bool m_isStructureNew = true;  // since that was compared
  bool m_arePlacesOld = false;   // those of hulls, wires and their labels
  HullSource m_hullsOf;
  std::shared_ptr<const Analysis> m_tensorsOf;  // that wires show
  HullFilter m_hullFilter = HullFilter::Both;
  WireLabels m_wireLabels = WireLabels::Short;
  bool m_areSpeedupsVisible = true;
};

}  // namespace fuseline::ui
