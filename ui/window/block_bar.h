// BlockBar: above the canvas, while the inside of a block is shown: where one is, and the way out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/theme/theme.h"

#include <QHBoxLayout>
#include <QList>
#include <QToolButton>
#include <QWidget>

namespace fuseline::ui {

class ElidedLabel;

/// "Pipeline ▸ layer1 ▸ mlp": a button for each place one can go out to.
class BlockBar : public QWidget {
  Q_OBJECT

 public:
  BlockBar(CanvasScope& scope, const Theme& theme, QWidget* parent = nullptr);
  /// From the pipeline to the block that is shown.
  const QList<QToolButton*>& places() const { return m_places; }
  QString note() const;

 private:
  void refresh();
  void refreshPlaces();
  void addPlace(const QString& name, qsizetype depth);

  CanvasScope& m_scope;
  QHBoxLayout* m_row;
  ElidedLabel* m_note;
  QStringList m_shown;
  QList<QToolButton*> m_places;
  QList<QWidget*> m_arrows;
};

}  // namespace fuseline::ui
