// Each window is a process of its own. On the session's bus it has a name that follows from its file.
// SPDX-License-Identifier: Apache-2.0
#include "app/designer/open_once.h"

#include "ui/window/desktop.h"

#include <QCryptographicHash>
#include <QDBusMessage>
#include <QFileInfo>

namespace {

constexpr auto kObject = "/Window";
constexpr auto kInterface = "org.fuseline.Designer";
constexpr int kMostWaitMs = 1000;

/// Empty for no file.
QString serviceOf(const QString& path) {
  const QString file = QFileInfo(path).canonicalFilePath();
  if (path.isEmpty() || file.isEmpty()) return {};
  const QByteArray hash = QCryptographicHash::hash(file.toUtf8(), QCryptographicHash::Sha1).toHex();
  return QStringLiteral("%1.file_%2").arg(QString::fromLatin1(fuseline::ui::kDesktopId), QString::fromLatin1(hash));
}

}  // namespace

OpenOnce::OpenOnce(fuseline::ui::Session& session, QWidget& window) : m_session(session), m_window(window) {
  m_bus.registerObject(QString::fromLatin1(kObject), this, QDBusConnection::ExportScriptableSlots);
  connect(&session.pipeline(), &fuseline::ui::OpenPipeline::changed, this, &OpenOnce::follow);
  follow();
}

void OpenOnce::follow() {
  const QString service = serviceOf(m_session.pipeline().path());
  if (service == m_service) return;
  if (!m_service.isEmpty()) m_bus.unregisterService(m_service);
  m_service = !service.isEmpty() && m_bus.registerService(service) ? service : QString();
}

bool OpenOnce::showOther(const QString& path) {
  const QString service = serviceOf(path);
  const QDBusConnection bus = QDBusConnection::sessionBus();
  if (service.isEmpty() || !bus.isConnected()) return false;
  QDBusMessage call = QDBusMessage::createMethodCall(service, QString::fromLatin1(kObject),
                                                     QString::fromLatin1(kInterface), QStringLiteral("comeToFront"));
  call.setAutoStartService(false);
  return bus.call(call, QDBus::Block, kMostWaitMs).type() == QDBusMessage::ReplyMessage;
}

void OpenOnce::comeToFront() {
  m_window.setWindowState(m_window.windowState() & ~Qt::WindowMinimized);
  m_window.show();
  m_window.raise();
  m_window.activateWindow();
}
