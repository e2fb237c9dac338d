// The desktop by D-Bus.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/desktop.h"

#include <QCoreApplication>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QVariantMap>

namespace fuseline::ui {

namespace {

const QString kNotifications = QStringLiteral("org.freedesktop.Notifications");
const QString kNotificationsPath = QStringLiteral("/org/freedesktop/Notifications");
const QString kLogin = QStringLiteral("org.freedesktop.login1");

template <class Reply, class Take>
void takeReply(const QDBusPendingCall& call, QObject* owner, Take take) {
  auto* watcher = new QDBusPendingCallWatcher(call, owner);
  QObject::connect(watcher, &QDBusPendingCallWatcher::finished, owner, [watcher, take] {
    const QDBusPendingReply<Reply> reply = *watcher;
    if (reply.isValid()) take(reply.value());
    watcher->deleteLater();
  });
}

}  // namespace

DBusDesktop::DBusDesktop(QDBusConnection session, QDBusConnection system, QObject* parent)
    : Desktop(parent), m_session(std::move(session)), m_system(std::move(system)) {
  m_session.connect(QString(), kNotificationsPath, kNotifications, QStringLiteral("ActionInvoked"), this,
                    SLOT(takeAction(uint, QString)));
}

void DBusDesktop::notify(const QString& title, const QString& text) {
  QDBusMessage call =
      QDBusMessage::createMethodCall(kNotifications, kNotificationsPath, kNotifications, QStringLiteral("Notify"));
  const QStringList actions{QStringLiteral("default"), tr("Show")};
  const QVariantMap hints{{QStringLiteral("desktop-entry"), QString::fromLatin1(kDesktopId)}};
  constexpr int kDesktopsOwnTime = -1;
  call << QCoreApplication::applicationName() << m_notification.value_or(0) << QString::fromLatin1(kDesktopId) << title
       << text.toHtmlEscaped() << actions << hints << kDesktopsOwnTime;
  takeReply<uint>(m_session.asyncCall(call), this, [this](uint id) { m_notification = id; });
}

void DBusDesktop::takeAction(uint notification, const QString&) {
  if (notification == m_notification) Q_EMIT activated();
}

void DBusDesktop::showProgress(std::optional<double> share) {
  QDBusMessage update =
      QDBusMessage::createSignal(QStringLiteral("/org/fuseline/designer"),
                                 QStringLiteral("com.canonical.Unity.LauncherEntry"), QStringLiteral("Update"));
  update << QStringLiteral("application://%1.desktop").arg(QLatin1String(kDesktopId))
         << QVariantMap{{QStringLiteral("progress"), share.value_or(0.0)},
                        {QStringLiteral("progress-visible"), share.has_value()}};
  m_session.send(update);
}

void DBusDesktop::stayAwake(bool isAwake, const QString& why) {
  m_isAwake = isAwake;
  m_awake = QDBusUnixFileDescriptor();
  if (!isAwake) return;
  QDBusMessage call =
      QDBusMessage::createMethodCall(kLogin, QStringLiteral("/org/freedesktop/login1"),
                                     QStringLiteral("org.freedesktop.login1.Manager"), QStringLiteral("Inhibit"));
  call << QStringLiteral("idle:sleep") << QCoreApplication::applicationName() << why << QStringLiteral("block");
  takeReply<QDBusUnixFileDescriptor>(m_system.asyncCall(call), this, [this](const QDBusUnixFileDescriptor& lock) {
    if (m_isAwake) m_awake = lock;  // else the run has ended since
  });
}

}  // namespace fuseline::ui
