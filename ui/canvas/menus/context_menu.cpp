// Nodes, frames and fusions have the commands on the selection; ports, reroute points, wires and the canvas their own.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/menus/context_menu.h"

#include "core/edit/edit_script.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_selection.h"
#include "ui/canvas/graph_view.h"
#include "ui/canvas/node_moves.h"
#include "ui/canvas/wire_gesture.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <utility>

namespace fuseline::ui {

namespace {

class ContextMenu {
 public:
  ContextMenu(GraphView& view, QPoint place)
      : m_view(view), m_scene(view.graph()), m_place(place), m_menu(std::make_unique<QMenu>(&view)) {}

  std::unique_ptr<QMenu> make() && {
    const CanvasItems& items = m_scene.canvasItems();
    const QPointF position = m_view.mapToScene(m_place);
    if (const auto port = items.portNear(position))
      addPortCommands(*port);
    else if (m_scene.selection().isOver(position))
      addSelectionCommands();
    else if (const RerouteItem* point = items.reroutes().itemAt(position))
      addRerouteCommands(point->id());
    else if (const LinkItem* link = items.linkAt(position))
      addWireCommands(*link);
    else
      addCanvasCommands();
    return std::move(m_menu);
  }

 private:
  /// The canvas's own commands, in the groups of the Edit menu. Keys that only change the view are in View.
  void addSelectionCommands() {
    QList<QAction*> rest = m_view.actions();
    const QMenu* const edit = m_view.window()->findChild<QMenu*>(QString::fromLatin1(kEditMenuName));
    bool isNewGroup = false;
    const QList<QAction*> grouped = edit ? edit->actions() : QList<QAction*>();
    for (QAction* action : grouped) {
      isNewGroup = isNewGroup || action->isSeparator();
      if (rest.removeAll(action) == 0) continue;
      if (std::exchange(isNewGroup, false) && !m_menu->isEmpty()) m_menu->addSeparator();
      m_menu->addAction(action);
    }
    if (!m_menu->isEmpty()) m_menu->addSeparator();
    for (QAction* action : rest)
      if (!action->property(kViewKeyProperty).toBool()) m_menu->addAction(action);
  }

  template <class Run>
  QAction& add(const QString& text, Run run) {
    return *m_menu->addAction(text, &m_view, std::move(run));
  }

  /// The search, with nothing selected that the op would go after.
  auto searchHere() const {
    return [&view = m_view, place = m_place] {
      view.graph().scope().select({});
      view.search().insertAt(view.mapToScene(place), view.viewport()->mapToGlobal(place));
    };
  }

  std::vector<Link> linksAt(const PortRef& port) const {
    std::vector<Link> links = linksOf(m_scene.scope().document());
    std::erase_if(links, [&](const Link& link) { return (port.isOutput ? link.from : link.to) != port.endpoint(); });
    return links;
  }

  void addPortCommands(const PortRef& port) {
    const QPointF position = *m_scene.node(port.node)->portPosition(port);
    const QPoint onScreen = m_view.viewport()->mapToGlobal(m_place);
    const std::vector<Link> links = linksAt(port);
    const bool isTaken = !port.isOutput && !links.empty();
    const QString name = toQt(toString(port.endpoint()));
    add(isTaken ? translated("Move the wire of %1").arg(name) : translated("Draw a wire from %1").arg(name),
        [&wires = m_scene.wires(), port, position, onScreen] {
          wires.begin(port, position);
          wires.release(position, onScreen);  // as a click does: the wire stays in the hand
        });
    add(port.isOutput ? translated("Find an op to connect %1 to...").arg(name)
                      : translated("Find an op to feed %1...").arg(name),
        [&view = m_view, port, place = m_place, onScreen] {
          view.search().insertAtWire({port.endpoint(), port.isOutput}, view.mapToScene(place), onScreen);
        })
        .setEnabled(!isTaken);
    add(translated("Disconnect %1").arg(name), [&scope = m_scene.scope(), links, name] {
      EditScript script(scope.document());
      for (const Link& link : links) removeLink(script, link);
      scope.apply(std::move(script).finish("Disconnect " + name.toStdString()));
    }).setEnabled(!links.empty());
    addInspection(port, links);
  }

  /// Captures hold the tensors of the pipeline itself, by the outputs that produce them.
  void addInspection(const PortRef& port, const std::vector<Link>& links) {
    if (m_scene.scope().isInside()) return;
    m_menu->addSeparator();
    const bool hasTensor = port.isOutput || !links.empty();
    const QString tensor = hasTensor ? toQt(toString(port.isOutput ? port.endpoint() : links.front().from)) : QString();
    add(translated("Inspect tensor"), [&view = m_view, tensor] {
      Q_EMIT view.tensorWanted(tensor);
    }).setEnabled(hasTensor);
  }

  void addRerouteCommands(const std::string& id) {
    add(translated("Remove the reroute point"), [&scope = m_scene.scope(), id] {
      scope.apply(EditGroup{"Remove reroute points", {MoveNode{.id = id, .position = std::nullopt}}});
    });
  }

  void addWireCommands(const LinkItem& item) {
    const Link& link = item.link();
    const Edit point = m_scene.canvasItems().reroutes().addition(item, m_view.mapToScene(m_place));
    add(translated("Insert op into the wire..."), searchHere());
    add(translated("Add a reroute point"), [&scope = m_scene.scope(), point] { scope.apply(point); });
    add(translated("Remove the wire to %1").arg(toQt(toString(link.to))),
        [&scope = m_scene.scope(), link] { scope.apply(unlinkEdit(scope.document(), link)); });
  }

  void addCanvasCommands() {
    add(translated("Insert op here..."), searchHere());
    add(translated("Paste"), [&commands = m_scene.commands()] { commands.paste(); });
    m_menu->addSeparator();
    add(translated("Auto-arrange"), [&view = m_view] {
      if (view.graph().moves().layOut()) view.fit();
    });
    add(translated("Fit all"), [&view = m_view] { view.fit(); });
  }

  GraphView& m_view;
  GraphScene& m_scene;
  const QPoint m_place;
  std::unique_ptr<QMenu> m_menu;
};

}  // namespace

std::unique_ptr<QMenu> contextMenuAt(GraphView& view, QPoint place) { return ContextMenu(view, place).make(); }

}  // namespace fuseline::ui
