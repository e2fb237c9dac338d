// The interface of QComboBox, with a name of its own.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/combo_accessible.h"

#include <QAbstractItemView>
#include <QAccessible>
#include <QAccessibleWidget>
#include <QComboBox>
#include <QLineEdit>

namespace fuseline::ui {

namespace {

class ComboAccessible : public QAccessibleWidget {
 public:
  explicit ComboAccessible(QComboBox* box) : QAccessibleWidget(box, QAccessible::ComboBox), m_box(*box) {}

  int childCount() const override { return m_box.isEditable() ? 2 : 1; }
  QAccessibleInterface* child(int index) const override {
    if (index == 0) return QAccessible::queryAccessibleInterface(m_box.view());
    return index == 1 && m_box.isEditable() ? QAccessible::queryAccessibleInterface(m_box.lineEdit()) : nullptr;
  }
  int indexOfChild(const QAccessibleInterface* child) const override {
    if (child->object() == m_box.view()) return 0;
    return m_box.isEditable() && child->object() == m_box.lineEdit() ? 1 : -1;
  }
  QString text(QAccessible::Text kind) const override {
    if (kind == QAccessible::Value) return m_box.currentText();
    const QString text = QAccessibleWidget::text(kind);
    return kind == QAccessible::Name && text.isEmpty() ? m_box.toolTip() : text;
  }
  QAccessible::State state() const override {
    QAccessible::State state = QAccessibleWidget::state();
    state.expandable = true;
    state.expanded = m_box.view()->isVisible();
    state.editable = m_box.isEditable();
    return state;
  }
  QStringList actionNames() const override { return {showMenuAction(), pressAction()}; }
  void doAction(const QString& name) override {
    if (name != showMenuAction() && name != pressAction()) return;
    m_box.view()->isVisible() ? m_box.hidePopup() : m_box.showPopup();
  }

 private:
  QComboBox& m_box;
};

QAccessibleInterface* comboInterface(const QString& className, QObject* object) {
  auto* box = className == QLatin1String("QComboBox") ? qobject_cast<QComboBox*>(object) : nullptr;
  return box ? new ComboAccessible(box) : nullptr;
}

}  // namespace

void installComboAccessibility() { QAccessible::installFactory(comboInterface); }

}  // namespace fuseline::ui
