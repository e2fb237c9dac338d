// Tests desktop notifications about runs, and the calls of the desktop's services.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"
#include "ui/window/desktop.h"
#include "ui/window/run_notice.h"

#include <QDBusContext>
#include <QDBusServer>
#include <QSignalSpy>
#include <QTest>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace fuseline::ui::desktop_test {

class DesktopTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void aLongRunIsToldWithItsResult();
  void aShortRunIsNotTold();
  void sendsNoNoticeWhileTheWindowIsActive();
  void aRunThatCannotStartLeavesTheDesktopAlone();
  void progressIsSaidInWholePerCents();
  void aNotificationShowsTheWindow();
  void theLockIsHeldUntilTheRunEnds();
  void aLockThatComesTooLateIsLetGo();
  void progressGoesToTheTaskBar();
  void withoutServicesNothingHappens();
};

namespace {

constexpr int kPatienceMs = 60'000;
using namespace std::chrono_literals;

QStringList worker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

struct HeardDesktop : Desktop {
  void notify(const QString& title, const QString& text) override { notes << title + QStringLiteral(": ") + text; }
  void showProgress(std::optional<double> share) override { shares.push_back(share); }
  void stayAwake(bool isAwake, const QString&) override { awake << isAwake; }

  QStringList notes;
  std::vector<std::optional<double>> shares;
  QList<bool> awake;
};

/// A window that runs the small pipeline once.
struct NoticedRun : Fixture {
  explicit NoticedRun(std::chrono::milliseconds longTime)
      : Fixture(smallPipeline(), worker()), notice(session, window, desktop, longTime) {}
  bool run() {
    QSignalSpy finished(&session.runner(), &Runner::finished);
    session.runner().run();
    return QTest::qWaitFor([&] { return finished.count() > 0; }, kPatienceMs);
  }

  HeardDesktop desktop;
  RunNotice notice;
};

/// Answers of a desktop's services, at the other end of a bus.
class Services : public QObject, protected QDBusContext {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.Notifications")

 public Q_SLOTS:
  Q_SCRIPTABLE uint Notify(const QString& program, uint replaced, const QString& icon, const QString& title,
                           const QString& text, const QStringList& actions, const QVariantMap& hints, int) {
    notes << QStringList{program,
                         QString::number(replaced),
                         icon,
                         title,
                         text,
                         actions.join(u'|'),
                         hints.value(QStringLiteral("desktop-entry")).toString()};
    return 7;
  }

 Q_SIGNALS:
  Q_SCRIPTABLE void ActionInvoked(uint id, const QString& action);

 public:
  QList<QStringList> notes;
};

/// Grants locks: the write end of a pipe. It is held as long as the read end is not at its end.
class Login : public QObject {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.login1.Manager")

 public Q_SLOTS:
  Q_SCRIPTABLE QDBusUnixFileDescriptor Inhibit(const QString& what, const QString&, const QString&,
                                               const QString& mode) {
    asked = what + u' ' + mode;
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    m_readEnd = QDBusUnixFileDescriptor(ends[0]);
    QDBusUnixFileDescriptor lock(ends[1]);
    ::close(ends[0]);
    ::close(ends[1]);
    return lock;
  }

 public:
  bool isHeld() const {
    pollfd waited{.fd = m_readEnd.fileDescriptor(), .events = POLLIN, .revents = 0};
    return m_readEnd.isValid() && ::poll(&waited, 1, 0) >= 0 && (waited.revents & POLLHUP) == 0;
  }
  QString asked;

 private:
  QDBusUnixFileDescriptor m_readEnd;
};

class TaskBar : public QObject {
  Q_OBJECT

 public Q_SLOTS:
  void update(const QString& program, const QVariantMap& values) { updates << qMakePair(program, values); }

 public:
  QList<QPair<QString, QVariantMap>> updates;
};

/// A bus between this program and itself, with the services at its other end.
class Bus {
 public:
  Bus() {
    QObject::connect(&m_server, &QDBusServer::newConnection, &services, [this](const QDBusConnection& connection) {
      m_far = connection;
      m_far.registerObject(QStringLiteral("/org/freedesktop/Notifications"), &services,
                           QDBusConnection::ExportScriptableContents);
      m_far.registerObject(QStringLiteral("/org/freedesktop/login1"), &login,
                           QDBusConnection::ExportScriptableContents);
      m_far.connect(QString(), QStringLiteral("/org/fuseline/designer"),
                    QStringLiteral("com.canonical.Unity.LauncherEntry"), QStringLiteral("Update"), &taskBar,
                    SLOT(update(QString, QVariantMap)));
    });
  }
  ~Bus() { QDBusConnection::disconnectFromPeer(kName); }

  QDBusConnection connection() {
    QDBusConnection near = QDBusConnection::connectToPeer(m_server.address(), kName);
    if (!QTest::qWaitFor([this] { return m_far.isConnected(); }, kPatienceMs)) qFatal("No bus");
    return near;
  }

  Services services;
  Login login;
  TaskBar taskBar;

 private:
  static inline const QString kName = QStringLiteral("desktop");
  QDBusServer m_server;
  QDBusConnection m_far{QString()};
};

}  // namespace

void DesktopTest::initTestCase() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
}

void DesktopTest::aLongRunIsToldWithItsResult() {
  NoticedRun run(0ms);
  run.window.hide();
  QVERIFY2(run.run(), qPrintable(run.window.message()));
  QCOMPARE(run.desktop.notes.size(), 1);
  QVERIFY2(run.desktop.notes.front().contains(toQt(run.session.results().lastRun()->record.deviceName())),
           qPrintable(run.desktop.notes.front()));
  QCOMPARE(run.desktop.awake, (QList<bool>{true, false}));
  QVERIFY(!run.desktop.shares.empty() && !run.desktop.shares.back());
}

void DesktopTest::aShortRunIsNotTold() {
  NoticedRun run(1h);
  run.window.hide();
  QVERIFY(run.run());
  QVERIFY(run.desktop.notes.isEmpty());
  QCOMPARE(run.desktop.awake, (QList<bool>{true, false}));
}

void DesktopTest::sendsNoNoticeWhileTheWindowIsActive() {
  NoticedRun run(0ms);
  run.window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&run.window));
  QVERIFY(run.run());
  QVERIFY(run.desktop.notes.isEmpty());
}

void DesktopTest::aRunThatCannotStartLeavesTheDesktopAlone() {
  Fixture f(smallPipeline(), {QStringLiteral("/no/such/program")});
  HeardDesktop desktop;
  const RunNotice notice(f.session, f.window, desktop, 0ms);
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return failed.count() > 0; }, kPatienceMs));
  QVERIFY(desktop.awake.isEmpty() || !desktop.awake.back());
  QCOMPARE(desktop.awake.size() % 2, 0);
}

void DesktopTest::progressIsSaidInWholePerCents() {
  Fixture f(smallPipeline(), worker());
  HeardDesktop desktop;
  const RunNotice notice(f.session, f.window, desktop);
  f.session.runner().run();
  desktop.shares.clear();
  for (int done = 0; done <= 1000; ++done) Q_EMIT f.session.runner().progress(QStringLiteral("measuring"), done, 1000);
  QCOMPARE(desktop.shares.size(), std::size_t{100});
  QCOMPARE(desktop.shares.front(), std::optional(0.01));
  QCOMPARE(desktop.shares.back(), std::optional(1.0));
  f.session.runner().cancel();
}

void DesktopTest::aNotificationShowsTheWindow() {
  Bus bus;
  DBusDesktop desktop(bus.connection(), bus.connection());
  QSignalSpy activated(&desktop, &Desktop::activated);
  desktop.notify(QStringLiteral("mlp"), QStringLiteral("1 < 2"));
  QVERIFY(QTest::qWaitFor([&] { return bus.services.notes.size() == 1; }, kPatienceMs));
  QCOMPARE(bus.services.notes.front().mid(1),
           (QStringList{"0", "org.fuseline.designer", "mlp", "1 &lt; 2", "default|Show", "org.fuseline.designer"}));
  Q_EMIT bus.services.ActionInvoked(6, QStringLiteral("default"));  // of another program
  QVERIFY(QTest::qWaitFor(
      [&] {
        Q_EMIT bus.services.ActionInvoked(7, QStringLiteral("default"));
        return activated.count() > 0;
      },
      kPatienceMs));
  desktop.notify(QStringLiteral("mlp"), QStringLiteral("again"));
  QVERIFY(QTest::qWaitFor([&] { return bus.services.notes.size() == 2; }, kPatienceMs));
  QCOMPARE(bus.services.notes.back()[1], QStringLiteral("7"));
}

void DesktopTest::theLockIsHeldUntilTheRunEnds() {
  Bus bus;
  DBusDesktop desktop(bus.connection(), bus.connection());
  desktop.stayAwake(true, QStringLiteral("measuring"));
  QVERIFY(QTest::qWaitFor([&] { return bus.login.isHeld(); }, kPatienceMs));
  QCOMPARE(bus.login.asked, QStringLiteral("idle:sleep block"));
  QTest::qWait(50);
  QVERIFY(bus.login.isHeld());
  desktop.stayAwake(false, {});
  QVERIFY(QTest::qWaitFor([&] { return !bus.login.isHeld(); }, kPatienceMs));
}

void DesktopTest::aLockThatComesTooLateIsLetGo() {
  Bus bus;
  DBusDesktop desktop(bus.connection(), bus.connection());
  desktop.stayAwake(true, QStringLiteral("measuring"));
  desktop.stayAwake(false, {});
  QVERIFY(QTest::qWaitFor([&] { return !bus.login.asked.isEmpty() && !bus.login.isHeld(); }, kPatienceMs));
}

void DesktopTest::progressGoesToTheTaskBar() {
  Bus bus;
  DBusDesktop desktop(bus.connection(), bus.connection());
  desktop.showProgress(0.25);
  desktop.showProgress(std::nullopt);
  QVERIFY(QTest::qWaitFor([&] { return bus.taskBar.updates.size() == 2; }, kPatienceMs));
  QCOMPARE(bus.taskBar.updates[0].first, QStringLiteral("application://org.fuseline.designer.desktop"));
  QCOMPARE(bus.taskBar.updates[0].second.value(QStringLiteral("progress")).toDouble(), 0.25);
  QVERIFY(bus.taskBar.updates[0].second.value(QStringLiteral("progress-visible")).toBool());
  QVERIFY(!bus.taskBar.updates[1].second.value(QStringLiteral("progress-visible")).toBool());
}

void DesktopTest::withoutServicesNothingHappens() {
  const QDBusConnection none{QStringLiteral("none")};
  DBusDesktop desktop(none, none);
  QSignalSpy activated(&desktop, &Desktop::activated);
  desktop.notify(QStringLiteral("mlp"), QStringLiteral("done"));
  desktop.showProgress(0.5);
  desktop.stayAwake(true, QStringLiteral("measuring"));
  QTest::qWait(20);
  desktop.stayAwake(false, {});
  QCOMPARE(activated.count(), 0);
}

FUSELINE_UI_TEST(DesktopTest)

}  // namespace fuseline::ui::desktop_test

#include "test_ui_desktop.moc"
