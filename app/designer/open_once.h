// OpenOnce: a file that another window shows comes to the front there, so that nobody edits it in two windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QDBusConnection>
#include <QObject>
#include <QString>
#include <QWidget>

class OpenOnce : public QObject {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.fuseline.Designer")

 public:
  /// Tells the others which file the window shows, whenever it is another one. Both outlive it.
  OpenOnce(fuseline::ui::Session& session, QWidget& window);

  /// Brings the window that shows this file to the front. False: there is none that answers.
  static bool showOther(const QString& path);

 public Q_SLOTS:
  Q_SCRIPTABLE void comeToFront();

 private:
  void follow();

  fuseline::ui::Session& m_session;
  QWidget& m_window;
  QDBusConnection m_bus = QDBusConnection::sessionBus();
  QString m_service;  // of the file; empty: another window shows it as well, or there is none
};
