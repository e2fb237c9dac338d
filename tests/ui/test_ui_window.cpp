// The window as a whole: its panes stand beside each other, also where there is little room.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_support.h"

#include <QDockWidget>
#include <QLabel>
#include <QTest>
#include <QToolBar>
#include <QToolButton>

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline::ui {

class WindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void panesDoNotOverlapInASmallWindow_data();
  void panesDoNotOverlapInASmallWindow();
  void planSummaryIsCutOffAndStaysInItsTip();
  void overflowOfAToolBarIsSeen_data();
  void overflowOfAToolBarIsSeen();
};

namespace {

constexpr QSize kSmallWindow(1000, 700);

void shrink(Fixture& f) {
  f.window.resize(kSmallWindow);
  f.window.restoreDefaultLayout();
  QCoreApplication::processEvents();
}

QString example(const char* name) {
  return QStringLiteral(FUSELINE_SOURCE_DIR "/resources/examples/%1.fuseline").arg(QString::fromLatin1(name));
}

/// The canvas and the docks that are not behind another tab, by name.
std::vector<std::pair<QString, QRect>> panesOf(const MainWindow& window) {
  std::vector<std::pair<QString, QRect>> panes = {{QStringLiteral("canvas"), window.centralWidget()->geometry()}};
  for (const auto* dock : window.findChildren<QDockWidget*>())
    if (!dock->visibleRegion().isEmpty()) panes.emplace_back(dock->objectName(), dock->geometry());
  return panes;
}

/// "plan over inspector"; empty when every pane has its own room in the window.
QString overlapIn(const MainWindow& window) {
  const auto panes = panesOf(window);
  for (const auto& [name, area] : panes) {
    if (!window.rect().contains(area)) return name + QStringLiteral(" is not in the window");
    for (const auto& [otherName, other] : panes)
      if (name < otherName && area.intersects(other)) return name + QStringLiteral(" over ") + otherName;
  }
  return {};
}

}  // namespace

void WindowTest::panesDoNotOverlapInASmallWindow_data() {
  QTest::addColumn<QString>("tab");
  for (const char* tab : {"timings", "numerics", "problems"}) QTest::newRow(tab) << QString::fromLatin1(tab);
}

void WindowTest::panesDoNotOverlapInASmallWindow() {
  QFETCH(const QString, tab);
  Fixture f(smallPipeline());
  QVERIFY(f.window.openFile(example("llama_mlp")));
  QVERIFY(waitForAnalysis(f.session));
  shrink(f);
  f.window.findChild<QDockWidget*>(tab)->raise();
  QCoreApplication::processEvents();
  QCOMPARE(f.window.size(), kSmallWindow);
  QCOMPARE(overlapIn(f.window), QString());
  QVERIFY(panesOf(f.window).size() >= 6);

  // A problem with repairs, and its details.
  QVERIFY(f.session.apply(SetAttribute{.id = "fc1", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  f.window.problems().selectNext(1);
  QCoreApplication::processEvents();
  QCOMPARE(overlapIn(f.window), QString());
}

void WindowTest::planSummaryIsCutOffAndStaysInItsTip() {
  Fixture f(smallPipeline());
  f.session.setPlanTarget({.architecture = "sm_100", .ranks = 8});
  QVERIFY(waitForAnalysis(f.session));
  const auto* summary = f.window.plan().findChild<QLabel*>();
  QVERIFY(summary->text().endsWith(QStringLiteral("planned for sm_100, 8 ranks")));
  QCOMPARE(summary->toolTip(), summary->text());
  QVERIFY(f.window.plan().minimumSizeHint().width() < 300);
}

void WindowTest::overflowOfAToolBarIsSeen_data() {
  QTest::addColumn<int>("theme");
  QTest::newRow("light") << static_cast<int>(ThemeChoice::Light);
  QTest::newRow("dark") << static_cast<int>(ThemeChoice::Dark);
}

void WindowTest::overflowOfAToolBarIsSeen() {
  QFETCH(const int, theme);
  Fixture f(smallPipeline());
  f.theme.apply(static_cast<ThemeChoice>(theme));
  f.window.resize(760, 600);
  QCoreApplication::processEvents();
  const auto* bar = f.window.findChild<QToolBar*>(QStringLiteral("hullBar"));
  auto* more = bar->findChild<QToolButton*>(QStringLiteral("qt_toolbar_ext_button"));
  QVERIFY(more && more->isVisible());
  const QImage picture = more->grab().toImage();
  double contrast = 0;
  for (int y = 0; y < picture.height(); ++y)
    for (int x = 0; x < picture.width(); ++x)
      contrast = std::max(contrast, contrastRatio(picture.pixelColor(x, y), f.theme.colors().panel));
  QVERIFY2(contrast > 4.5, qPrintable(QString::number(contrast)));
}

}  // namespace fuseline::ui

QTEST_MAIN(fuseline::ui::WindowTest)
#include "test_ui_window.moc"
