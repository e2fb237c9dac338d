// Nodes and wires of the canvas as interfaces of QAccessible.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/graph_accessible.h"

#include "ui/canvas/graph_view.h"
#include "ui/theme/format.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QApplication>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

QRect screenArea(const GraphView& view, const QRectF& sceneArea) {
  const QRect area = view.mapFromScene(sceneArea).boundingRect();
  return {view.viewport()->mapToGlobal(area.topLeft()), area.size()};
}

std::string keyOf(const Link& link) { return toString(link.from) + ">" + toString(link.to); }

/// Common part of nodes and wires.
class ItemAccessible : public QAccessibleInterface {
 public:
  ItemAccessible(GraphView& view, std::string key) : m_view(view), m_key(std::move(key)) {}

  const std::string& key() const { return m_key; }
  bool isValid() const override { return item() != nullptr; }
  QObject* object() const override { return nullptr; }
  QWindow* window() const override { return parent()->window(); }
  QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(&m_view); }
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  void setText(QAccessible::Text, const QString&) override {}
  QString text(QAccessible::Text kind) const override { return kind == QAccessible::Name ? name() : QString(); }
  QRect rect() const override { return isValid() ? screenArea(m_view, area()) : QRect(); }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.invalid = !isValid();
    state.offscreen =
        !screenArea(m_view, m_view.mapToScene(m_view.viewport()->rect()).boundingRect()).intersects(rect());
    return state;
  }

 protected:
  virtual const QGraphicsItem* item() const = 0;
  virtual QRectF area() const { return item()->sceneBoundingRect(); }
  virtual QString name() const = 0;

  GraphView& m_view;
  const std::string m_key;
};

class WireAccessible : public ItemAccessible {
 public:
  using ItemAccessible::ItemAccessible;
  QAccessible::Role role() const override { return QAccessible::Graphic; }

 protected:
  const LinkItem* item() const override {
    const std::vector<LinkItem*>& links = m_view.graph().links();
    const auto found = std::ranges::find(links, m_key, [](const LinkItem* link) { return keyOf(link->link()); });
    return found == links.end() ? nullptr : *found;
  }
  QString name() const override { return isValid() ? NodeSentences::of(*item()) : QString(); }
};

class NodeAccessible : public ItemAccessible, public QAccessibleActionInterface {
 public:
  using ItemAccessible::ItemAccessible;
  QAccessible::Role role() const override { return QAccessible::ListItem; }
  QAccessible::State state() const override {
    QAccessible::State state = ItemAccessible::state();
    state.focusable = true;
    state.selectable = true;
    state.multiSelectable = true;
    state.selected = scope().selection().contains(toQt(m_key));
    state.focused = m_view.hasFocus() && scope().singleSelection() == toQt(m_key);
    return state;
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }
  QStringList actionNames() const override { return {pressAction(), setFocusAction()}; }
  /// Pressing is what Enter does on the canvas.
  void doAction(const QString& action) override {
    if (!isValid() || !actionNames().contains(action)) return;
    m_view.goTo(toQt(m_key));
    if (action == pressAction()) Q_EMIT m_view.propertiesRequested();
  }
  QStringList keyBindingsForAction(const QString& action) const override {
    return action == pressAction() ? QStringList{QStringLiteral("Return")} : QStringList();
  }

 protected:
  const NodeItem* item() const override { return m_view.graph().node(m_key); }
  QRectF area() const override { return item()->sceneBox(); }
  QString name() const override { return isValid() ? m_view.sentences().of(m_key) : QString(); }

 private:
  const CanvasScope& scope() const { return m_view.graph().scope(); }
};

void tell(QAccessibleInterface* about, QAccessible::Event what) {
  QAccessibleEvent event(about, what);
  QAccessible::updateAccessibility(&event);
}

class GraphAccessible : public QAccessibleWidget {
 public:
  explicit GraphAccessible(GraphView& view) : QAccessibleWidget(&view, QAccessible::List), m_view(view) {
    QObject::connect(&view.graph(), &GraphScene::itemsChanged, &m_listener, [this] { followItems(); });
    QObject::connect(&view.session().plan(), &LivePlan::analysisChanged, &m_listener,
                     [this] { tellOfFocus(QAccessible::NameChanged); });
    // Qt tells of the view once it has the keyboard, and of tables that show the same selection: this comes last.
    const auto follow = [this] { tellOfFocus(); };
    QObject::connect(&view.graph().scope(), &CanvasScope::selectionChanged, &m_listener, follow, Qt::QueuedConnection);
    QObject::connect(qApp, &QApplication::focusChanged, &m_listener, follow, Qt::QueuedConnection);
  }
  ~GraphAccessible() override {
    for (const auto& [key, id] : m_ids) QAccessible::deleteAccessibleInterface(id);
  }

  int childCount() const override { return numItems() + QAccessibleWidget::childCount(); }
  QAccessibleInterface* child(int index) const override {
    if (index < 0 || index >= numItems()) return QAccessibleWidget::child(index - numItems());
    return itemAt(index);
  }
  int indexOfChild(const QAccessibleInterface* child) const override {
    if (const auto* item = dynamic_cast<const ItemAccessible*>(child)) return indexOfKey(item->key());
    const int index = QAccessibleWidget::indexOfChild(child);
    return index < 0 ? index : index + numItems();
  }
  QAccessibleInterface* childAt(int x, int y) const override {
    for (int index = 0; index < numNodes(); ++index)
      if (child(index)->rect().contains(x, y)) return child(index);
    const QPoint place = m_view.viewport()->mapFromGlobal(QPoint(x, y));
    const LinkItem* link = m_view.graph().canvasItems().linkAt(m_view.mapToScene(place));
    return link ? childOf(keyOf(link->link())) : QAccessibleWidget::childAt(x, y);
  }
  /// Asked for with every selection: the other nodes are not looked at.
  QAccessibleInterface* focusChild() const override {
    const std::string selected = m_view.graph().scope().singleSelection().toStdString();
    return m_view.hasFocus() && m_view.graph().node(selected) ? itemOf(selected, true)
                                                              : QAccessibleWidget::focusChild();
  }

 private:
  /// Those of the nodes, then those of the wires.
  const std::vector<std::string>& keys() const {
    if (std::exchange(m_isStale, false)) refresh();
    return m_keys;
  }
  void refresh() const {
    m_keys = m_view.sentences().nodes();
    m_numNodes = static_cast<int>(m_keys.size());
    for (const LinkItem* link : m_view.graph().links()) m_keys.push_back(keyOf(link->link()));
    const std::set<std::string> kept(m_keys.begin(), m_keys.end());
    std::erase_if(m_ids, [&](const auto& entry) {
      const bool isGone = !kept.contains(entry.first);
      if (isGone) QAccessible::deleteAccessibleInterface(entry.second);
      return isGone;
    });
  }
  void followItems() {
    m_isStale = true;
    if (!QAccessible::isActive()) return;  // no assistive technology is active
    const std::vector<std::string> before = m_keys;
    if (keys() != before) tell(this, QAccessible::ObjectReorder);
  }
  void tellOfFocus(QAccessible::Event what = QAccessible::Focus) {
    QAccessibleInterface* focus = m_view.hasFocus() ? focusChild() : nullptr;
    if (focus) tell(focus, what);
  }

  int numItems() const { return static_cast<int>(keys().size()); }
  int numNodes() const {
    keys();  // which counts them
    return m_numNodes;
  }
  int indexOfKey(const std::string& key) const {
    const auto found = std::ranges::find(keys(), key);
    return found == keys().end() ? -1 : static_cast<int>(found - keys().begin());
  }
  QAccessibleInterface* childOf(const std::string& key) const {
    const int index = indexOfKey(key);
    return index < 0 ? nullptr : itemAt(index);
  }
  QAccessibleInterface* itemAt(int index) const {
    return itemOf(keys()[static_cast<std::size_t>(index)], index < numNodes());
  }
  QAccessibleInterface* itemOf(const std::string& key, bool isNode) const {
    const auto known = m_ids.find(key);
    if (known != m_ids.end()) return QAccessible::accessibleInterface(known->second);
    QAccessibleInterface* item = makeItem(isNode, key);
    m_ids[key] = QAccessible::registerAccessibleInterface(item);
    return item;
  }
  /// The cache of QAccessible comes to own it.
  QAccessibleInterface* makeItem(bool isNode, const std::string& key) const {
    if (isNode) return new NodeAccessible(m_view, key);
    return new WireAccessible(m_view, key);
  }

  GraphView& m_view;
  QObject m_listener;
  // Made when somebody asks.
  mutable bool m_isStale = true;
  mutable std::vector<std::string> m_keys;
  mutable int m_numNodes = 0;
  mutable std::map<std::string, QAccessible::Id> m_ids;
};

QAccessibleInterface* makeGraphAccessible(const QString&, QObject* object) {
  auto* view = qobject_cast<GraphView*>(object);
  return view ? new GraphAccessible(*view) : nullptr;
}

}  // namespace

void installGraphAccessibility() { QAccessible::installFactory(makeGraphAccessible); }

}  // namespace fuseline::ui
