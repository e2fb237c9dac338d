// Fields of two pages are the same where kind and accessible name are.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/kept_focus.h"

#include <QLineEdit>
#include <QList>

#include <algorithm>

namespace fuseline::ui {

namespace {

QList<QWidget*> fieldsOf(const QWidget& page) {
  QList<QWidget*> fields = page.findChildren<QWidget*>();
  fields.removeIf([&](const QWidget* field) {
    return !(field->focusPolicy() & Qt::TabFocus) || !field->isEnabledTo(&page) || !field->isVisibleTo(&page);
  });
  return fields;
}

QString nameOf(const QWidget& field) {
  return QString::fromLatin1(field.metaObject()->className()) + u'/' + field.accessibleName();
}

}  // namespace

KeptFocus::KeptFocus(const QWidget* page) {
  const QWidget* focused = page ? page->focusWidget() : nullptr;
  if (!focused || !focused->hasFocus()) return;
  const QList<QWidget*> fields = fieldsOf(*page);
  m_index = fields.indexOf(focused);
  if (m_index < 0) return;
  m_name = nameOf(*focused);
  m_sameBefore = std::count_if(fields.begin(), fields.begin() + m_index,
                               [&](const QWidget* field) { return nameOf(*field) == m_name; });
  if (const auto* edit = qobject_cast<const QLineEdit*>(focused)) m_cursor = edit->cursorPosition();
}

void KeptFocus::giveTo(QWidget& page) const {
  const QList<QWidget*> fields = fieldsOf(page);
  if (m_index < 0 || fields.isEmpty()) return;
  qsizetype before = 0;
  const auto isSame = [&](const QWidget* field) { return nameOf(*field) == m_name && before++ == m_sameBefore; };
  const auto same = std::ranges::find_if(fields, isSame);
  QWidget* field = same != fields.end() ? *same : fields[std::min(m_index, fields.size() - 1)];
  field->setFocus(Qt::OtherFocusReason);
  if (auto* edit = qobject_cast<QLineEdit*>(field)) edit->setCursorPosition(m_cursor);
}

}  // namespace fuseline::ui
