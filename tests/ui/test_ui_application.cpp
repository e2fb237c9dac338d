// An exception in a slot is told, and the program goes on.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "ui/window/guarded_application.h"

#include <QAbstractButton>
#include <QMessageBox>
#include <QPushButton>
#include <QTimer>
#include <QtTest>

#include <stdexcept>

namespace fuseline::ui::application_test {

class ApplicationTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cleanup() { app().setReport({}); }
  void anExceptionInASlotIsTold();
  void anExceptionOfAnyTypeIsTold();
  void anExceptionInATimerIsTold();
  void withoutAReportABoxSaysIt();
  void oneThatComesWhileAnotherIsToldIsDropped();

 private:
  static GuardedApplication& app() { return *static_cast<GuardedApplication*>(qApp); }
  /// A button whose slot does this.
  static void click(const std::function<void()>& slot) {
    QPushButton button;
    QObject::connect(&button, &QPushButton::clicked, &button, slot);
    button.show();
    QTest::mouseClick(&button, Qt::LeftButton);
  }
};

void ApplicationTest::anExceptionInASlotIsTold() {
  QStringList told;
  app().setReport([&](const QString& sentence) { told << sentence; });
  click([] { throw std::out_of_range("basic_string::substr"); });
  QCOMPARE(told.size(), 1);
  QVERIFY2(told.front().contains(QStringLiteral("basic_string::substr")), qPrintable(told.front()));
}

void ApplicationTest::anExceptionOfAnyTypeIsTold() {
  QStringList told;
  app().setReport([&](const QString& sentence) { told << sentence; });
  click([] { throw 7; });
  QCOMPARE(told.size(), 1);
}

void ApplicationTest::anExceptionInATimerIsTold() {
  QStringList told;
  bool goesOn = false;
  app().setReport([&](const QString& sentence) { told << sentence; });
  QTimer::singleShot(0, qApp, [] { throw std::runtime_error("late"); });
  QTimer::singleShot(1, qApp, [&] { goesOn = true; });
  QTRY_VERIFY(goesOn);
  QCOMPARE(told.size(), 1);
}

void ApplicationTest::withoutAReportABoxSaysIt() {
  QString text;
  QTimer::singleShot(0, qApp, [&] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!box) return;
    text = box->text();
    box->buttons().front()->click();
  });
  click([] { throw std::runtime_error("a bug"); });
  QVERIFY2(text.contains(QStringLiteral("a bug")), qPrintable(text));
}

void ApplicationTest::oneThatComesWhileAnotherIsToldIsDropped() {
  int told = 0;
  app().setReport([&](const QString&) {
    ++told;
    click([] { throw std::runtime_error("second"); });
  });
  click([] { throw std::runtime_error("first"); });
  QCOMPARE(told, 1);
}

[[maybe_unused]] const bool isRegistered = registerUiTest(__FILE__, runUiTest<ApplicationTest, GuardedApplication>);

}  // namespace fuseline::ui::application_test

#include "test_ui_application.moc"
