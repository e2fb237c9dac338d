// PalettePanel: the op library, with a filter. Drag an op, or press Enter to append it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/library/op_use.h"
#include "ui/library/palette_model.h"

#include <QDrag>
#include <QLineEdit>
#include <QTreeView>
#include <QWidget>

#include <memory>

namespace fuseline::ui {

/// The tree of the palette. What is dragged hangs below the pointer, so that the wire under it stays visible.
class PaletteView : public QTreeView {
  Q_OBJECT

 public:
  using QTreeView::QTreeView;
  /// The drag of the current entry; nullptr for a category.
  std::unique_ptr<QDrag> makeDrag();

 protected:
  void startDrag(Qt::DropActions actions) override;
};

class PalettePanel : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether favorites and recent ops are read from the settings and written there.
  explicit PalettePanel(const Theme& theme, bool isKept = false, QWidget* parent = nullptr);
  /// Lists the blocks of the document, too, and notes which op was added, unless that was undone.
  void showDocument(const PipelineDocument& document, bool isUndone);
  PaletteView* view() const { return m_view; }
  QLineEdit* filterEdit() const { return m_filterEdit; }
  OpUse& use() const { return *m_use; }

 Q_SIGNALS:
  void activated(const QString& entry);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void applyFilter(const QString& query);
  void selectFirstOp();
  void activateCurrent();
  void showMenu(QPoint place);
  void showCard(const FusibleOperation& operation);
  OpUse* m_use;
  PaletteModel* m_model;
  PaletteFilter* m_filter;
  QLineEdit* m_filterEdit;
  PaletteView* m_view;
};

}  // namespace fuseline::ui
