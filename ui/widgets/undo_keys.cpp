// Undo and redo keys of fields.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/undo_keys.h"

#include <QKeyEvent>

#include <utility>

namespace fuseline::ui {

namespace {

bool isUndoKey(const QEvent& event) {
  if (event.type() != QEvent::ShortcutOverride && event.type() != QEvent::KeyPress) return false;
  const auto& key = static_cast<const QKeyEvent&>(event);
  return key.matches(QKeySequence::Undo) || key.matches(QKeySequence::Redo);
}

class UndoKeys : public QObject {
 public:
  UndoKeys(QWidget& field, std::function<bool()> isTyping) : QObject(&field), m_isTyping(std::move(isTyping)) {
    field.installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (!isUndoKey(*event) || m_isTyping()) return false;
    event->ignore();
    return true;
  }

 private:
  std::function<bool()> m_isTyping;
};

}  // namespace

void shareUndoKeys(QWidget& field, std::function<bool()> isTyping) { new UndoKeys(field, std::move(isTyping)); }

}  // namespace fuseline::ui
