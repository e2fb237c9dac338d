// The window on small screens: nothing is out of reach.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/widgets/screen_room.h"
#include "ui/window/export_dialog.h"
#include "ui/window/first_size.h"

#include <QDockWidget>
#include <QPushButton>
#include <QScopeGuard>
#include <QScreen>
#include <QTabBar>
#include <QTest>
#include <QToolButton>

namespace fuseline::ui::screens_test {

namespace {
constexpr int kLowestWindowPx = 520;
}  // namespace

class ScreensTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void theFirstWindowFitsTheScreen_data();
  void theFirstWindowFitsTheScreen();
  void aWindowWithAnyPaneIsSmall();
  void everyTabIsInSight_data();
  void everyTabIsInSight();
  void theStartPageCanBeClosedOnASmallScreen();
  void noLineOfTheStartPageIsSqueezed();
  void theCanvasHasTheFocusAfterTheStartPage();
  void theCanvasHasTheFocusOfANewPipeline();
  void fixesAreInSightInALowWindow();
  void theMarkOfAWorkspaceHidesNone();
  void panesAreMirroredForScriptsFromTheRight();
  void dialogsFitASmallScreen();
  void theInspectorIsNotCut();
};

void ScreensTest::theFirstWindowFitsTheScreen_data() {
  QTest::addColumn<QSize>("available");
  QTest::newRow("laptop") << QSize(1366, 728);
  QTest::newRow("doubled") << QSize(960, 560);
  QTest::newRow("desktop") << QSize(1920, 1160);
  QTest::newRow("large") << QSize(2560, 1440);
}

void ScreensTest::theFirstWindowFitsTheScreen() {
  QFETCH(QSize, available);
  const QSize size = firstWindowSize(available);
  QVERIFY(size.width() <= available.width() && size.height() < available.height());
  QVERIFY(size.width() >= 900 || size.width() * 10 >= available.width() * 9);
}

void ScreensTest::dialogsFitASmallScreen() {
  QCOMPARE(sizeOnScreen({820, 620}, {1920, 1160}), QSize(820, 620));
  const QSize small = sizeOnScreen({820, 620}, {960, 560});
  QVERIFY(small.width() == 820 && small.height() < 560);
  Fixture f(smallPipeline());
  const QSize screen = f.window.screen()->availableGeometry().size();
  const auto write = [](const PipelineExporter&) {
    return TextWork([] { return Result<PipelineText>(PipelineText{}); });
  };
  ExportDialog dialog(write, QStringLiteral("small.fuseline"), &f.window);
  QVERIFY(dialog.minimumSizeHint().height() <= kLowestWindowPx);
  QVERIFY(dialog.width() <= screen.width() && dialog.height() <= screen.height());
}

/// The buttons at the right end of its rows are inside.
void ScreensTest::theInspectorIsNotCut() {
  Fixture f(smallPipeline());
  f.window.resize(960, 560);
  f.window.panes().restoreDefaultLayout();
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  const QDockWidget& dock = f.window.panes().dock(QStringLiteral("inspector"));
  QTest::qWait(50);
  int numButtons = 0;
  for (const auto* button : f.window.inspector().findChildren<QToolButton*>()) {
    if (!button->isVisible() || !button->accessibleName().startsWith(QStringLiteral("Remove"))) continue;
    ++numButtons;
    const int right = button->mapTo(&dock, QPoint(button->width(), 0)).x();
    QVERIFY2(right <= dock.width(), qPrintable(QStringLiteral("%1: %2").arg(button->accessibleName()).arg(right)));
  }
  QVERIFY(numButtons > 2);
}

void ScreensTest::aWindowWithAnyPaneIsSmall() {
  OpenedRun f(measuredRun(), QStringLiteral("timings"));
  QVERIFY(f.isOpen);
  for (const QString& id : f.window.panes().ids()) {
    f.window.panes().show(id);
    QCoreApplication::processEvents();
    const QSize least = f.window.minimumSizeHint();
    QVERIFY2(least.height() <= kLowestWindowPx, qPrintable(QStringLiteral("%1: %2").arg(id).arg(least.height())));
    QVERIFY2(least.width() <= 960, qPrintable(QStringLiteral("%1: %2").arg(id).arg(least.width())));
  }
}

void ScreensTest::everyTabIsInSight_data() {
  QTest::addColumn<QSize>("size");
  QTest::newRow("laptop") << QSize(1366, 728);
  QTest::newRow("doubled") << QSize(960, 560);
  QTest::newRow("large") << QSize(2560, 1400);
}

void ScreensTest::everyTabIsInSight() {
  QFETCH(QSize, size);
  Fixture f(smallPipeline());
  f.window.resize(size);
  f.window.show();
  for (const char* pane : {"timings", "runs"}) {
    f.window.panes().show(QString::fromLatin1(pane));
    QTest::qWait(20);
    int numBars = 0;
    for (const QTabBar* tabs : f.window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
      if (!tabs->isVisible()) continue;
      ++numBars;
      const QRect last = tabs->tabRect(tabs->count() - 1);
      QVERIFY2(tabs->tabRect(0).left() >= 0 && last.right() <= tabs->width(),
               qPrintable(QStringLiteral("%1 of %2").arg(last.right()).arg(tabs->width())));
      QVERIFY(tabs->tabToolTip(tabs->count() - 1) == tabs->tabText(tabs->count() - 1));
    }
    QVERIFY(numBars > 0);
  }
}

void ScreensTest::theStartPageCanBeClosedOnASmallScreen() {
  Fixture f(smallPipeline());
  f.window.resize(firstWindowSize({960, 560}));
  f.window.show();
  f.window.start().show();
  QCoreApplication::processEvents();
  for (const QPushButton* button : f.window.startPage().findChildren<QPushButton*>()) {
    const QRect place(button->mapTo(&f.window, QPoint()), button->size());
    QVERIFY2(f.window.rect().contains(place), qPrintable(button->text()));
  }
}

void ScreensTest::noLineOfTheStartPageIsSqueezed() {
  Fixture f(smallPipeline());
  f.window.resize(firstWindowSize({960, 560}));
  f.window.show();
  f.window.startPage().setRecentFiles(QStringList(8, QStringLiteral("/somewhere/a.fuseline")));
  f.window.start().show();
  QCoreApplication::processEvents();
  for (const QToolButton* line : f.window.startPage().findChildren<QToolButton*>())
    QVERIFY2(line->height() >= line->sizeHint().height(), qPrintable(line->text()));
}

void ScreensTest::theCanvasHasTheFocusAfterTheStartPage() {
  Fixture f(smallPipeline());
  f.window.show();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  f.window.start().show();
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
  QVERIFY(!f.window.startPage().isVisible());
  QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&f.window.canvas()));
}

void ScreensTest::theCanvasHasTheFocusOfANewPipeline() {
  Fixture f(smallPipeline());
  f.window.show();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&f.window.canvas()));
  f.window.panes().goTo(QStringLiteral("outline"));
  QVERIFY(QApplication::focusWidget() != &f.window.canvas());
  f.session.openText(smallPipeline(), QStringLiteral("other"));
  QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&f.window.canvas()));
}

/// Beside whatever pane: the table above or below them gives way.
void ScreensTest::fixesAreInSightInALowWindow() {
  Fixture f(smallPipeline());
  QVERIFY(
      f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "normalized_shape", .value = Json::array({7})}));
  QVERIFY(waitForAnalysis(f.session));
  for (const QSize size : {QSize(1366, 700), QSize(960, 560)}) {
    f.window.resize(size);
    f.window.showPane(QStringLiteral("problems"));
    QTest::qWait(20);
    const auto buttons = f.window.problems().findChildren<QPushButton*>();
    const auto fix = std::ranges::find_if(
        buttons, [](const QPushButton* button) { return button->text().startsWith(QStringLiteral("Set ")); });
    QVERIFY(fix != buttons.end());
    QCOMPARE((*fix)->visibleRegion().boundingRect().height(), (*fix)->height());
  }
}

void ScreensTest::theMarkOfAWorkspaceHidesNone() {
  Fixture f(smallPipeline());
  f.window.resize(1366, 700);
  QCoreApplication::processEvents();
  f.window.workspaces().offerProfile();
  QCoreApplication::processEvents();
  auto* const bar = f.window.findChild<QToolBar*>(QStringLiteral("workspaces"));
  QVERIFY(bar && bar->actions().size() == 4);
  QVERIFY(bar->actions()[2]->text().endsWith(u'•'));
  for (QAction* workspace : bar->actions())
    QVERIFY2(bar->rect().contains(bar->widgetForAction(workspace)->geometry()), qPrintable(workspace->text()));
}

/// The pipeline is not: data flows to the right.
void ScreensTest::panesAreMirroredForScriptsFromTheRight() {
  QApplication::setLayoutDirection(Qt::RightToLeft);
  const auto restore = qScopeGuard([] { QApplication::setLayoutDirection(Qt::LeftToRight); });
  Fixture f(smallPipeline());
  QCoreApplication::processEvents();
  const auto placeOf = [&](const QWidget& widget) { return widget.mapTo(&f.window, QPoint()).x(); };
  QVERIFY(placeOf(f.window.palettePanel()) > placeOf(f.window.canvas()));
  QVERIFY(placeOf(f.window.inspector()) < placeOf(f.window.canvas()));
  const QPointF x = f.window.canvas().mapFromScene(f.window.scene().node("x")->sceneBox().center());
  const QPointF y = f.window.canvas().mapFromScene(f.window.scene().node("y")->sceneBox().center());
  QVERIFY(x.x() < y.x() && f.window.canvas().rect().contains(x.toPoint()));
  const double before = x.x();
  f.window.canvas().camera().panBy(QPoint(40, 0));
  QCOMPARE(f.window.canvas().mapFromScene(f.window.scene().node("x")->sceneBox().center()).x() - before, 40.0);
}

FUSELINE_UI_TEST(ScreensTest)

}  // namespace fuseline::ui::screens_test

#include "test_ui_screens.moc"
