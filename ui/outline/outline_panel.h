// OutlinePanel: the pipeline as a list, for the keyboard and for screen readers. The commands for an op on
// the canvas also work here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/outline/outline_model.h"
#include "ui/session/session.h"

#include <QLabel>
#include <QLineEdit>
#include <QSet>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

/// F2 types over the name, whichever cell is the current one.
class OutlineView : public QTreeView {
  Q_OBJECT

 public:
  using QTreeView::QTreeView;

 Q_SIGNALS:
  /// F2 where the name is not to be changed.
  void nameIsFixed();

 protected:
  void keyPressEvent(QKeyEvent* event) override;
};

class OutlinePanel : public QWidget {
  Q_OBJECT

 public:
  OutlinePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const OutlineFilter& model() const { return *m_filter; }
  OutlineView* view() const { return m_view; }
  QLineEdit* filterEdit() const { return m_filterEdit; }
  /// Row of a node of the pipeline; invalid if the filter hides it.
  QModelIndex indexOf(const QString& node) const;

 Q_SIGNALS:
  /// Enter, or a double click.
  void propertiesRequested();
  /// The same on an op inside of an instance: "layer1.fc1".
  void insideWanted(const QString& place);
  /// A sentence for the status line.
  void hint(const QString& sentence);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool mayDiffer() const;
  void createView();
  void refresh();
  void showRows();
  void noteOpen(const QModelIndex& index, bool isOpen);
  void open(const QModelIndex& parent);
  void applyFilter(const QString& query);
  void goToFirst();
  void showSelection();
  void takeSelection();
  void activate(const QModelIndex& index);

  Session& m_session;
  OutlineModel* m_model;
  OutlineFilter* m_filter;
  OutlineView* m_view;  // before the field: it is what a key that goes to the pane should reach
  QLineEdit* m_filterEdit;
  QLabel* m_empty;
  QSet<QString> m_openPlaces;
  bool m_isSyncing = false;
};

}  // namespace fuseline::ui
