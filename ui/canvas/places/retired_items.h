// RetiredItems: items of a scene that are no longer shown, until there is time to delete them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QGraphicsItem>
#include <QtAlgorithms>

#include <utility>
#include <vector>

namespace fuseline::ui {

/// Deleting an item makes the scene go over its whole index, which takes long while there are very many.
class RetiredItems {
 public:
  void add(QGraphicsItem* item) {
    item->setSelected(false);
    item->hide();
    m_items.push_back(item);
  }
  void deleteAll() { qDeleteAll(std::exchange(m_items, {})); }

 private:
  std::vector<QGraphicsItem*> m_items;  // the scene owns them
};

}  // namespace fuseline::ui
