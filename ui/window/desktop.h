// Desktop: what a run asks of the desktop around the window: a notification, progress in the task bar, to stay awake.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDBusConnection>
#include <QDBusUnixFileDescriptor>
#include <QObject>
#include <QString>

#include <optional>

namespace fuseline::ui {

/// The id that the desktop knows the program by: of its .desktop file, its icon and its windows.
inline constexpr const char* kDesktopId = "org.fuseline.designer";

class Desktop : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  virtual void notify(const QString& title, const QString& text) = 0;
  /// From 0 to 1; nothing: there is none any more.
  virtual void showProgress(std::optional<double> share) = 0;
  /// While it stays awake, the machine does not go to sleep by itself.
  virtual void stayAwake(bool isAwake, const QString& why) = 0;

 Q_SIGNALS:
  /// The user has clicked a notification.
  void activated();
};

/// By D-Bus: org.freedesktop.Notifications, com.canonical.Unity.LauncherEntry (which KDE and several docks follow) and
/// org.freedesktop.login1. Nobody is waited for; where a service is not there, nothing happens.
class DBusDesktop : public Desktop {
  Q_OBJECT

 public:
  explicit DBusDesktop(QDBusConnection session = QDBusConnection::sessionBus(),
                       QDBusConnection system = QDBusConnection::systemBus(), QObject* parent = nullptr);

  void notify(const QString& title, const QString& text) override;
  void showProgress(std::optional<double> share) override;
  void stayAwake(bool isAwake, const QString& why) override;

 private Q_SLOTS:
  void takeAction(uint notification, const QString& action);

 private:
  QDBusConnection m_session;
  QDBusConnection m_system;
  std::optional<uint> m_notification;  // the last one, which the next one replaces
  bool m_isAwake = false;
  QDBusUnixFileDescriptor m_awake;  // the lock is held while this is open
};

}  // namespace fuseline::ui
