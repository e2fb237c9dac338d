// Lists in the order of use.
// SPDX-License-Identifier: Apache-2.0
#include "ui/library/op_use.h"

#include "ui/theme/format.h"

#include <QSettings>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr qsizetype kMostRecents = 6;
constexpr auto kFavoritesKey = "palette/favorites";
constexpr auto kRecentsKey = "palette/recents";

}  // namespace

OpUse::OpUse(bool isKept, QObject* parent) : QObject(parent), m_isKept(isKept) {
  if (!isKept) return;
  m_favorites = QSettings().value(kFavoritesKey).toStringList();
  m_recents = QSettings().value(kRecentsKey).toStringList();
}

void OpUse::setFavorite(const QString& entry, bool isFavorite) {
  m_favorites.removeAll(entry);
  if (isFavorite) m_favorites.append(entry);
  keep();
  Q_EMIT changed();
}

void OpUse::follow(const PipelineDocument& document, bool isUndone) {
  if (std::ssize(document.ops()) == m_known.size()) return;  // most edits add no op
  QSet<QString> ids;
  QStringList added;
  for (const DocumentOp& op : document.ops()) {
    ids.insert(toQt(op.id));
    if (!m_known.contains(toQt(op.id))) added.append(toQt(op.operation));
  }
  const bool isEdit = m_known.isEmpty() ? ids.size() == 1 : m_known.intersects(ids);
  m_known = std::move(ids);
  if (added.size() != 1 || !isEdit || isUndone) return;
  m_recents.removeAll(added.front());
  m_recents.prepend(added.front());
  m_recents = m_recents.first(std::min(m_recents.size(), kMostRecents));
  keep();
  Q_EMIT changed();
}

void OpUse::keep() const {
  if (!m_isKept) return;
  QSettings settings;
  settings.setValue(kFavoritesKey, m_favorites);
  settings.setValue(kRecentsKey, m_recents);
}

}  // namespace fuseline::ui
