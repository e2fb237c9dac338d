// RoomyDelegate and RoomyHeader: tables with some room around their texts, so that a number at the right edge of its
// column stands clear of the words in the next one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/window_style.h"

#include <QHeaderView>
#include <QStyle>
#include <QStyledItemDelegate>
#include <QTreeView>

namespace fuseline::ui {

/// Behind what is aligned to the right.
inline constexpr QChar kBehindRight(0x2002);

class RoomyDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const int room = option.widget ? option.widget->style()->pixelMetric(kRowRoomMetric, &option, option.widget) : 0;
    return QStyledItemDelegate::sizeHint(option, index) + QSize(10, room);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if ((option->displayAlignment & Qt::AlignRight) && !option->text.isEmpty()) option->text += kBehindRight;
  }
};

/// Header of a tree view, with sections that can be clicked and moved.
class RoomyHeader : public QHeaderView {
 public:
  explicit RoomyHeader(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) {
    setSectionsClickable(true);
    setSectionsMovable(true);
    setStretchLastSection(false);  // the numbers of the last column stand below their head
    setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  }

 protected:
  void initStyleOptionForIndex(QStyleOptionHeader* option, int section) const override {
    QHeaderView::initStyleOptionForIndex(option, section);
    if (isRight(section)) option->text += kBehindRight;
  }
  QSize sectionSizeFromContents(int section) const override {
    const int room = isRight(section) ? fontMetrics().horizontalAdvance(kBehindRight) : 0;
    return QHeaderView::sectionSizeFromContents(section) + QSize(room, 0);
  }

 private:
  bool isRight(int section) const {
    return model() &&
           (model()->headerData(section, Qt::Horizontal, Qt::TextAlignmentRole).toInt() & Qt::AlignRight) != 0;
  }
};

/// To be called before anything is said about the header.
inline void makeRoomy(QTreeView& view, RoomyDelegate* delegate = nullptr) {
  view.setHeader(new RoomyHeader(&view));
  view.setItemDelegate(delegate ? delegate : new RoomyDelegate(&view));
}

}  // namespace fuseline::ui
