// Workspaces: arrangements of panes for a task, each with the sizes that the user left it in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/panes.h"

#include <QActionGroup>
#include <QByteArray>
#include <QMap>
#include <QMenu>
#include <QObject>
#include <QString>
#include <QToolBar>

namespace fuseline::ui {

class Workspaces : public QObject {
  Q_OBJECT

 public:
  /// isKept: the user's settings have the arrangements and the workspace of the last window.
  Workspaces(Panes& panes, bool isKept, QObject* parent);

  QToolBar* makeBar(QWidget* parent) const;
  void addTo(QMenu& menu) const;
  /// The arrangement of the last window's workspace, if it was kept.
  void restoreLast();
  /// Keeps the arrangement of the current one.
  void keep();
  /// Keeps the arrangement of the workspace that it leaves. id: "design", "explain", "profile" or "compare". False:
  /// there is none of this id.
  bool show(const QString& id);
  const QString& current() const { return m_current; }
  /// As it was when the window was new.
  void resetCurrent();
  /// After a run: marks the workspace that gives measurements room, until it is shown.
  void offerProfile();

 Q_SIGNALS:
  /// One is shown: another one, the same again, or that of the last window.
  void shown(const QString& id);

 private:
  void add(const QString& id, const QString& text, const QString& tip);
  void arrange(const QString& id);
  void markProfile(bool isNew);
  static QString markedText();
  static void keepRoomForMark(QAction& choice, QWidget& button);
  void load();

  Panes& m_panes;
  bool m_isKept;
  QActionGroup* m_choices;
  QString m_current;
  QMap<QString, QByteArray> m_layouts;  // as they were left
};

}  // namespace fuseline::ui
