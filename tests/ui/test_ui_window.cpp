// The window as a whole: its panes stand beside each other, also where there is little room.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/support/read_file.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/search_popup.h"
#include "ui/session/autosave.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"
#include "ui/theme/system_palette.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/window/command_palette.h"
#include "ui/window/drops/drop_overlay.h"
#include "ui/window/guide_window.h"
#include "ui/window/help.h"
#include "ui/window/menu_commands.h"
#include "ui/window/shortcuts_dialog.h"
#include "ui/window/template_card.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QDesktopServices>
#include <QDir>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QStandardItemModel>
#include <QTabBar>
#include <QTest>
#include <QTextBlock>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>
#include <QTreeWidget>
#include <QUrl>
#include <QWindow>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace fuseline::ui::window_test {

class WindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void panesDoNotOverlapInASmallWindow_data();
  void panesDoNotOverlapInASmallWindow();
  void tabsKeepTheirNamesInASmallWindow();
  void aLowWindowKeepsRoomForTheCanvas();
  void profileGivesMeasurementsRoom();
  void editsInAnyOrderSaveTheSameText();
  void savingWhatWasOpenedChangesNothing();
  void aBaselineLeavesTheDockAsItIs();
  void planSummaryIsCutOffAndStaysInItsTip();
  void overflowOfAToolBarIsSeen_data();
  void overflowOfAToolBarIsSeen();
  void f6WalksThroughTheVisiblePanes();
  void theInspectorKeepsTheFocusOnItsField();
  void f6ReachesEveryPane();
  void deleteInATableLeavesTheOps();
  void f6ShowsWhereTheKeyboardIs();
  void tabGoesOnInsideAPane();
  void arrowKeysWalkThroughBothLanes();
  void commandsAreFoundByTyping();
  void commandsThatAreOffAreNotFound();
  void commandsSayTheirPlaceAndKeys();
  void whatKeysDoInTheCanvasAndTheOutlineAreCommands();
  void startPageShowsEveryTemplate();
  void startPageOpensTheChosenItem();
  void startPageGoesByEscAndByAPressBesideIt();
  void startPageKeepsTheFocus();
  void theLastFileIsOpenedAgainWhereItWas();
  void aKilledWindowKeepsItsWorkspace();
  void aPaneBehindAnotherComesToTheFront();
  void theWheelChangesNoBoxWithoutTheKeyboard();
  void aHintEndsWithTheNextEdit();
  void fusionsOfALargePipelineAreShown();
  void aFileThatIsGoneIsNotOpenedAgain();
  void filesAreChosenWhereTheyWereLastTime();
  void guideOpensAtTheCodeOfAProblem();
  void keysOfCommandsAreChanged();
  void keysAreTakenFromTheirFormerCommand();
  void changedKeysAreKept();
  void aLayoutOfAHighWindowFitsALowOne();
  void f1ExplainsTheSelectedOp();
  void theEarlierFileIsKept();
  void tabsHaveIcons();
  void compactButtonsAndRowsAreLower();
  void aboutNamesTheDevices();
  void theThemeFollowsTheDesktop();
  void longMessagesAreShownInFullByAButton();
  void theLogOpensTheFolderOfUnsavedWork();
  void everyControlHasAName();
  void everyControlOfADialogHasAName_data();
  void everyControlOfADialogHasAName();
  void furtherFilesGetWindowsOfTheirOwn();
  void filesDroppedTogetherAllOpen();
  void aDragOfFilesSaysWhatADropDoes();
  void withCtrlADroppedFileIsCompared();
  void aDroppedFolderStandsForItsModelOrRun();
  void windowThatCannotOpenIsSaid();
};

/// A file manager.
class FolderWatcher : public QObject {
  Q_OBJECT

 public Q_SLOTS:
  void open(const QUrl& url) { opened = url; }

 public:
  QUrl opened;
};

namespace {

constexpr QSize kSmallWindow(1000, 700);

void shrink(Fixture& f) {
  f.window.resize(kSmallWindow);
  f.window.panes().restoreDefaultLayout();
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

/// Focusable widgets without an accessible name: "QComboBox in Numerics"
QStringList namelessIn(QWidget& window) {
  QStringList nameless;
  for (QWidget* widget : window.findChildren<QWidget*>()) {
    const auto* label = qobject_cast<QLabel*>(widget);
    const auto* tabs = qobject_cast<QTabBar*>(widget);
    // There is nothing to reach yet; Qt keeps tab bars that it needed once.
    if ((label && label->text().isEmpty()) || (tabs && tabs->count() == 0)) continue;
    const bool isPart = widget->objectName().startsWith(QStringLiteral("qt_")) || widget->focusProxy();
    if (widget->focusPolicy() == Qt::NoFocus || isPart || widget->window() != &window) continue;
    const QAccessibleInterface* control = QAccessible::queryAccessibleInterface(widget);
    if (!control->text(QAccessible::Name).isEmpty()) continue;
    QStringList place = {QString::fromLatin1(widget->metaObject()->className())};
    for (const QWidget* around = widget->parentWidget(); around; around = around->parentWidget())
      place.append(QString::fromLatin1(around->metaObject()->className()));
    nameless.append(place.join(QStringLiteral(" in ")));
  }
  return nameless;
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

/// Commands in the command palette; it stays open.
QStringList commandsFor(Fixture& f, const QString& query) {
  openCommandPalette(*f.window.menuBar(), &f.window);
  auto* const popup = f.window.findChild<SearchPopup*>();
  QTest::keyClicks(popup->findChild<QLineEdit*>(), query);
  QStringList texts;
  const auto* const list = popup->findChild<QTreeWidget*>();
  for (int row = 0; row < list->topLevelItemCount(); ++row) {
    const QTreeWidgetItem* const item = list->topLevelItem(row);
    texts.append(item->text(0) + u'|' + item->text(1));
  }
  return texts;
}

/// Keeps which windows were asked for.
void recordWindows(Fixture& f, QStringList& asked, bool isOpened = true) {
  f.window.files().setWindowOpener([&asked, isOpened](const QString& path) {
    asked.append(path);
    return isOpened;
  });
}

void closePalette(Fixture& f) { delete f.window.findChild<SearchPopup*>(); }

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
  QVERIFY(panesOf(f.window).size() >= 5);

  // A problem with repairs, and its details.
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc1", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  f.window.problems().selectNext(1);
  QCoreApplication::processEvents();
  QCOMPARE(overlapIn(f.window), QString());
}

void WindowTest::aLowWindowKeepsRoomForTheCanvas() {
  Theme theme;
  Session session{SessionSettings()};
  TestWindow window(session, theme, Persistence::None);
  window.resize(960, 560);
  window.panes().restoreDefaultLayout();
  window.show();
  session.openText(smallPipeline(), QStringLiteral("low"));
  QVERIFY(QTest::qWaitForWindowExposed(&window));
  QTRY_VERIFY2(window.canvas().height() >= 240, qPrintable(QString::number(window.canvas().height())));
  QDockWidget& plan = window.panes().dock(QStringLiteral("plan"));
  QVERIFY(window.tabifiedDockWidgets(&plan).contains(&window.panes().dock(QStringLiteral("timings"))));
  QVERIFY(window.panes().isInSight(window.plan()));
}

void WindowTest::aLayoutOfAHighWindowFitsALowOne() {
  Theme theme;
  Session session{SessionSettings()};
  TestWindow window(session, theme, Persistence::None);
  window.resize(1600, 1000);
  window.panes().restoreDefaultLayout();
  window.show();
  session.openText(smallPipeline(), QStringLiteral("high"));
  QVERIFY(QTest::qWaitForWindowExposed(&window));
  window.resize(960, 560);
  QCoreApplication::processEvents();
  window.panes().restoreDefaultLayout();
  QTRY_VERIFY2(window.canvas().height() >= 240, qPrintable(QString::number(window.canvas().height())));
  QVERIFY(window.panes().isInSight(window.plan()));
  window.resize(1600, 1000);
  QCoreApplication::processEvents();
  window.panes().restoreDefaultLayout();
  QTRY_VERIFY2(window.canvas().height() >= 300, qPrintable(QString::number(window.canvas().height())));
  QTRY_VERIFY(window.panes().isInSight(window.plan()) && window.panes().isInSight(window.timings()));
}

void WindowTest::f1ExplainsTheSelectedOp() {
  Fixture f(smallPipeline());
  f.window.show();
  f.session.selection().select({QStringLiteral("norm")});
  named<QAction>(f.window, "Help on the selected op")->trigger();
  const auto* guide = f.window.findChild<GuideWindow*>();
  QVERIFY(guide && guide->isVisible());
  QVERIFY(guide->windowTitle().contains(QStringLiteral("RMSNorm")));
  const QString text = guide->text().toPlainText();
  QVERIFY2(text.contains(QStringLiteral("formula")) && text.contains(QStringLiteral("eps")), qPrintable(text));
  f.window.helpMenu().showGuide(QStringLiteral("start"));
  QCOMPARE(guide->windowTitle(), QStringLiteral("Guide"));
}

void WindowTest::theEarlierFileIsKept() {
  const testing::TemporaryFolder folder;
  const QString path = QString::fromStdString((folder.path() / "kept.fuseline").string());
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().save(path).hasValue());
  const auto contentOf = [](const QString& name) {
    QFile file(name);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  };
  const QByteArray first = contentOf(path);
  const auto saveEdited = [&](double eps) {
    QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = eps}));
    QVERIFY(f.window.files().save());
  };
  saveEdited(1e-3);
  QVERIFY2(!QFile::exists(path + u'~'), "only where the user wants it");
  const QByteArray second = contentOf(path);
  named<QAction>(f.window, "Keep backup copies")->trigger();
  saveEdited(1e-2);
  QCOMPARE(contentOf(path + u'~'), second);
  QVERIFY(first != second && contentOf(path) != second);
}

void WindowTest::tabsHaveIcons() {
  Fixture f(smallPipeline());
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  int numTabs = 0;
  const auto areThere = [&] {
    numTabs = 0;
    for (const QTabBar* tabs : f.window.findChildren<QTabBar*>(Qt::FindDirectChildrenOnly))
      for (int tab = 0; tab < tabs->count(); ++tab, ++numTabs)
        if (tabs->isVisible() && tabs->tabIcon(tab).isNull()) return false;
    return true;
  };
  QTRY_VERIFY(areThere());
  QVERIFY(numTabs > 10);
  f.window.workspaces().show(QStringLiteral("profile"));
  QTRY_VERIFY(areThere());
}

void WindowTest::compactButtonsAndRowsAreLower() {
  Fixture f(smallPipeline());
  f.window.show();
  QStandardItemModel model(1, 1);
  QTreeView table;
  table.setModel(&model);
  makeRoomy(table);
  const auto heightOf = [] { return QPushButton(QStringLiteral("Start")).sizeHint().height(); };
  const auto rowHeight = [&] { return table.sizeHintForIndex(model.index(0, 0)).height(); };
  f.theme.setDensity(Density::Comfortable);
  const int comfortable = heightOf();
  const int comfortableRow = rowHeight();
  named<QAction>(f.window, "Compact")->trigger();
  QVERIFY2(heightOf() < comfortable, qPrintable(QString::number(comfortable)));
  QVERIFY2(rowHeight() < comfortableRow, qPrintable(QString::number(comfortableRow)));
  named<QAction>(f.window, "Comfortable")->trigger();
  QCOMPARE(heightOf(), comfortable);
}

void WindowTest::profileGivesMeasurementsRoom() {
  Fixture f(smallPipeline());
  f.window.resize(1600, 1000);
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  Panes& panes = f.window.panes();
  const int designPx = panes.dock(QStringLiteral("timings")).height();
  f.window.workspaces().show(QStringLiteral("profile"));
  QCoreApplication::processEvents();
  const QDockWidget& timings = panes.dock(QStringLiteral("timings"));
  const QDockWidget& roofline = panes.dock(QStringLiteral("roofline"));
  QVERIFY(timings.isVisible() && roofline.isVisible() && !panes.dock(QStringLiteral("inspector")).isVisible());
  QVERIFY2(timings.height() >= f.window.height() / 2, qPrintable(QString::number(timings.height())));
  QVERIFY(roofline.x() >= timings.x() + timings.width() && roofline.width() > f.window.width() / 3);
  f.window.workspaces().show(QStringLiteral("design"));
  QCoreApplication::processEvents();
  QVERIFY(panes.dock(QStringLiteral("inspector")).isVisible());
  QCOMPARE(panes.dock(QStringLiteral("timings")).height(), designPx);
}

void WindowTest::tabsKeepTheirNamesInASmallWindow() {
  Fixture f(smallPipeline());
  f.window.resize(1024, 700);
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  int numTabs = 0;
  for (const QTabBar* bar : f.window.findChildren<QTabBar*>(Qt::FindDirectChildrenOnly)) {
    for (int tab = 0; tab < bar->count(); ++tab)
      if (const int room = bar->tabRect(tab).width(); room <= bar->fontMetrics().horizontalAdvance(bar->tabText(tab))) {
        QVERIFY2(tab != bar->currentIndex() && !bar->tabIcon(tab).isNull(), qPrintable(bar->tabText(tab)));
        QVERIFY2(room >= bar->iconSize().width(), qPrintable(bar->tabText(tab)));
      }
    numTabs += bar->count();
  }
  QVERIFY(numTabs >= 16);
}

void WindowTest::planSummaryIsCutOffAndStaysInItsTip() {
  Fixture f(smallPipeline());
  f.session.setup().setPlanTarget({.architecture = "sm_100"});
  f.session.setup().setRanks(8);
  QVERIFY(waitForAnalysis(f.session));
  const auto* summary = f.window.plan().findChild<QLabel*>();
  QVERIFY(summary->text().endsWith(QStringLiteral("planned for sm_100, one of 8 ranks")));
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

namespace {

void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
  QTest::keyClick(QApplication::focusWidget(), key, modifiers);
}

bool hasFocus(const QWidget& pane) {
  const QWidget* focus = QApplication::focusWidget();
  return focus && (focus == &pane || pane.isAncestorOf(focus));
}

bool activate(Fixture& f) {
  f.window.activateWindow();
  f.window.canvas().setFocus();
  return QTest::qWaitForWindowActive(&f.window) && f.window.canvas().hasFocus();
}

}  // namespace

void WindowTest::f6WalksThroughTheVisiblePanes() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  TestWindow& window = f.window;
  const QList<QWidget*> order = {&window.inspector(), &window.fusions(),      &window.plan(),
                                 &window.timings(),   &window.palettePanel(), &window.canvas()};
  for (const QWidget* pane : order) {
    press(Qt::Key_F6);
    QVERIFY2(hasFocus(*pane), QApplication::focusWidget()->metaObject()->className());
    QVERIFY(QApplication::focusWidget()->isVisible());
  }
  for (auto pane = order.rbegin() + 1; pane != order.rend(); ++pane) {
    press(Qt::Key_F6, Qt::ShiftModifier);
    QVERIFY(hasFocus(**pane));
  }
  f.window.findChild<QDockWidget*>(QStringLiteral("numerics"))->raise();
  for (const char* pane : {"whyNot", "suggestions"}) f.window.findChild<QDockWidget*>(pane)->hide();
  QCoreApplication::processEvents();
  window.canvas().setFocus();  // the inspector's page may have been made anew, without the focus
  for (const QWidget* pane : std::initializer_list<const QWidget*>{&window.inspector(), &window.plan()}) {
    press(Qt::Key_F6);
    QVERIFY(hasFocus(*pane));
  }
  press(Qt::Key_F6);
  QVERIFY(hasFocus(window.numerics()));
}

void WindowTest::theInspectorKeepsTheFocusOnItsField() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  const auto isThere = [&](const QString& name) {
    const auto fields = f.window.inspector().findChildren<QLineEdit*>();
    return std::ranges::any_of(fields, [&](const QLineEdit* field) { return field->accessibleName() == name; });
  };
  for (QLineEdit* field : f.window.inspector().findChildren<QLineEdit*>())
    if (field->accessibleName() == QStringLiteral("Value of M")) field->setFocus();
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "A", .value = 7}));
  QTRY_VERIFY(isThere(QStringLiteral("Value of A")));  // the page was made anew
  QVERIFY(QApplication::focusWidget());
  QCOMPARE(QApplication::focusWidget()->accessibleName(), QStringLiteral("Value of M"));
  f.session.pipeline().undo();
  QTRY_VERIFY(!isThere(QStringLiteral("Value of A")));
  QCOMPARE(QApplication::focusWidget()->accessibleName(), QStringLiteral("Value of M"));
}

void WindowTest::f6ReachesEveryPane() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  for (QDockWidget* dock : f.window.findChildren<QDockWidget*>()) {
    dock->raise();
    QCoreApplication::processEvents();
    f.window.canvas().setFocus();
    bool isReached = false;
    for (int presses = 0; presses < 10 && !isReached; ++presses) {
      press(Qt::Key_F6);
      isReached = hasFocus(*dock->widget());
    }
    QVERIFY2(isReached, qPrintable(dock->objectName()));
  }
}

void WindowTest::deleteInATableLeavesTheOps() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  f.session.selection().select({QStringLiteral("act")});
  f.window.findChild<QDockWidget*>(QStringLiteral("problems"))->raise();
  QCoreApplication::processEvents();
  for (const char* pane : {"problems", "runs", "rules"}) {
    auto* dock = f.window.findChild<QDockWidget*>(QString::fromLatin1(pane));
    dock->raise();
    QCoreApplication::processEvents();
    auto* table = dock->findChild<QAbstractItemView*>();
    table->setFocus();
    if (!table->hasFocus()) continue;  // it shows nothing
    press(Qt::Key_Delete);
    QVERIFY2(f.session.pipeline().document().findOp("act"), pane);
  }
  f.window.canvas().setFocus();
  press(Qt::Key_Delete);
  QVERIFY(!f.session.pipeline().document().findOp("act"));
}

void WindowTest::f6ShowsWhereTheKeyboardIs() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  const auto* ring = f.window.findChild<PaneRing*>();
  QVERIFY(ring && !ring->isVisible());
  press(Qt::Key_F6);
  QVERIFY(ring->isVisible());
  QCOMPARE(ring->parentWidget(), f.window.inspector().parentWidget());
  QCOMPARE(ring->geometry(), f.window.inspector().geometry());
  press(Qt::Key_Tab);
  QVERIFY(ring->isVisible());
  f.window.canvas().setFocus();
  QVERIFY(!ring->isVisible());
}

void WindowTest::tabGoesOnInsideAPane() {
  Fixture f(residualPipeline(true));
  QVERIFY(activate(f));
  f.session.selection().select({QStringLiteral("add")});
  QCoreApplication::processEvents();
  press(Qt::Key_F6);
  for (int i = 0; i < 2; ++i) {
    const QWidget* before = QApplication::focusWidget();
    press(Qt::Key_Tab);
    QVERIFY(hasFocus(f.window.inspector()) && QApplication::focusWidget() != before);
  }
  press(Qt::Key_F6);
  QVERIFY(hasFocus(f.window.fusions()));
  press(Qt::Key_Tab);
  QVERIFY(hasFocus(f.window.fusions()));
  QVERIFY(qobject_cast<QAbstractButton*>(QApplication::focusWidget()));
}

void WindowTest::arrowKeysWalkThroughBothLanes() {
  Fixture f(smallPipeline());
  QVERIFY(f.window.openFile(example("gpt_mlp")));
  QVERIFY(waitForAnalysis(f.session));
  LanesView* view = f.window.plan().lanesView();
  const auto& [columns, forward, backward] = view->lanes();
  QVERIFY(forward.size() > 1 && backward.size() > 1);
  // Every box gets its turn, also where two are of the same op.
  for (const LaneBox& box : forward) {
    QTest::keyClick(view, Qt::Key_Right);
    QCOMPARE(view->currentBox(), &box);
  }
  QTest::keyClick(view, Qt::Key_Down);
  std::set<const LaneBox*> visited = {view->currentBox()};
  for (std::size_t i = 1; i < backward.size(); ++i) {
    QTest::keyClick(view, Qt::Key_Left);
    visited.insert(view->currentBox());
  }
  for (const LaneBox& box : backward) QVERIFY(visited.contains(&box));
  const QStringList& owners = view->currentBox()->owners;
  QCOMPARE(f.session.selection().ids(), QSet<QString>(owners.begin(), owners.end()));
  QTest::keyClick(view, Qt::Key_Up);
  QVERIFY(view->currentBox() >= &forward.front() && view->currentBox() <= &forward.back());
}

void WindowTest::commandsAreFoundByTyping() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.selection().ids().isEmpty());
  QVERIFY(commandsFor(f, QStringLiteral("select al")).front().startsWith(QStringLiteral("Select all")));
  QTest::keyClick(f.window.findChild<SearchPopup*>()->findChild<QLineEdit*>(), Qt::Key_Return);
  QCOMPARE(static_cast<std::size_t>(f.session.selection().ids().size()), f.session.pipeline().document().ops().size());
}

void WindowTest::commandsThatAreOffAreNotFound() {
  Fixture f(smallPipeline());
  const auto hasUndo = [&] {
    const QStringList texts = commandsFor(f, QStringLiteral("undo"));
    closePalette(f);
    return !texts.isEmpty() && texts.front().startsWith(QStringLiteral("Undo"));
  };
  QVERIFY(!hasUndo());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  QVERIFY(hasUndo());
}

/// A menu in a menu, too.
void WindowTest::commandsSayTheirPlaceAndKeys() {
  Fixture f(smallPipeline());
  QCOMPARE(commandsFor(f, QStringLiteral("auto-arrange")).front(), QStringLiteral("Auto-arrange|Edit   Ctrl+L"));
  closePalette(f);
  QCOMPARE(commandsFor(f, QStringLiteral("dark")).front(), QStringLiteral("Dark|View > Theme"));
  closePalette(f);
  QCOMPARE(commandsFor(f, QStringLiteral("theme dark")).front(), QStringLiteral("Dark|View > Theme"));
}

void WindowTest::whatKeysDoInTheCanvasAndTheOutlineAreCommands() {
  Fixture f(smallPipeline());
  QVERIFY(activate(f));
  f.session.selection().select({QStringLiteral("norm")});
  QCOMPARE(commandsFor(f, QStringLiteral("draw a wire")).front(), QStringLiteral("Draw a wire|Edit   W"));
  QTest::keyClick(f.window.findChild<SearchPopup*>()->findChild<QLineEdit*>(), Qt::Key_Return);
  QVERIFY(f.window.scene().wires().isDrawing());
  f.window.scene().wires().cancel();
  closePalette(f);
  QCOMPARE(commandsFor(f, QStringLiteral("go to out")).front(), QStringLiteral("Go to outline|View   Ctrl+Shift+O"));
}

namespace {
QList<TemplateCard*> cardsOf(Fixture& f) { return f.window.startPage().findChildren<TemplateCard*>(); }

TemplateCard* cardOf(Fixture& f, const QString& name) {
  const QList<TemplateCard*> cards = cardsOf(f);
  const auto found = std::ranges::find(cards, name, &TemplateCard::text);
  return found == cards.end() ? nullptr : *found;
}
}  // namespace

void WindowTest::startPageShowsEveryTemplate() {
  Fixture f(smallPipeline());
  QVERIFY(!f.window.startPage().isVisible());
  f.window.start().show();
  QCOMPARE(cardsOf(f).size(), static_cast<qsizetype>(documentTemplates().size()));
  for (TemplateCard* card : cardsOf(f)) QTRY_VERIFY2(card->hasPicture(), qPrintable(card->text()));
  // A picture shows something: not one color all over.
  const QImage picture = cardOf(f, QStringLiteral("llama-mlp"))->grab().toImage();
  std::set<QRgb> colors;
  for (int x = 0; x < picture.width(); ++x) colors.insert(picture.pixel(x, picture.height() / 3));
  QVERIFY2(colors.size() > 4, qPrintable(QString::number(colors.size())));
}

void WindowTest::startPageOpensTheChosenItem() {
  Fixture f(smallPipeline());
  const testing::TemporaryFolder folder;
  const QString gone = toQt((folder.path() / "gone.fuseline").string());
  const QString there = example("gpt_mlp");
  f.window.start().show();
  cardOf(f, QStringLiteral("residual-norm"))->click();
  QVERIFY(!f.window.startPage().isVisible());
  QCOMPARE(f.session.pipeline().displayName(), QStringLiteral("residual-norm"));
  f.window.start().show();
  f.window.startPage().setRecentFiles({gone, there});
  QList<QToolButton*> files;
  for (auto* button : f.window.startPage().findChildren<QToolButton*>())
    if (button->toolTip() == gone || button->toolTip() == there) files.append(button);
  QCOMPARE(files.size(), 2);
  QVERIFY(!files[0]->isEnabled());
  files[1]->click();
  QVERIFY(!f.window.startPage().isVisible());
  QCOMPARE(f.session.pipeline().path(), QFileInfo(there).absoluteFilePath());
}

void WindowTest::startPageGoesByEscAndByAPressBesideIt() {
  Fixture f(smallPipeline());
  StartPage& page = f.window.startPage();
  f.window.start().show();
  QTest::keyClick(&f.window, Qt::Key_Escape);
  QVERIFY(!page.isVisible());
  f.window.start().show();
  QTest::mouseClick(&page, Qt::LeftButton, {}, page.rect().center());  // between its parts
  QVERIFY(page.isVisible());
  QTest::mouseClick(&page, Qt::LeftButton, {}, QPoint(4, 4));
  QVERIFY(!page.isVisible());
}

void WindowTest::startPageKeepsTheFocus() {
  Fixture f(smallPipeline());
  f.window.start().show();
  std::set<const QWidget*> visited;
  for (qsizetype step = 0; step < 3 * cardsOf(f).size(); ++step) {
    const QWidget* focus = QApplication::focusWidget();
    QVERIFY(focus && f.window.startPage().isAncestorOf(focus));
    visited.insert(focus);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
  }
  for (const TemplateCard* card : cardsOf(f)) QVERIFY2(visited.contains(card), qPrintable(card->text()));
}

namespace {

/// A window that keeps settings, with a file of its own.
struct Kept {
  explicit Kept(const QString& path) {
    isOpen = path.isEmpty() || (window.openFile(path) && waitForAnalysis(session));
    window.resize(1200, 800);
    window.show();
  }
  Theme theme;
  Session session{SessionSettings{}};
  TestWindow window{session, theme, Persistence::Settings};
  bool isOpen = false;
};

QString pipelineFile(const testing::TemporaryFolder& folder, const char* name) {
  const QString path = toQt((folder / name).string());
  QFile file(path);
  if (file.open(QFile::WriteOnly)) file.write(QByteArray::fromStdString(smallPipeline()));
  return path;
}

/// Where the dialog begins that this opens; a file is chosen in another folder, or it is given up.
QString folderOfChooser(const std::function<void()>& open, const QString& chosenFolder = {}) {
  QString first;
  QTimer::singleShot(0, qApp, [&] {
    auto* chooser = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (!chooser) return;
    first = chooser->directory().absolutePath();
    if (chosenFolder.isEmpty()) return chooser->reject();
    chooser->setDirectory(chosenFolder);
    chooser->selectFile(QStringLiteral("chosen"));
    QMetaObject::invokeMethod(chooser, "accept");
  });
  open();
  return first;
}

}  // namespace

/// Nothing is closed: the second window finds what the first one has written until then.
void WindowTest::aKilledWindowKeepsItsWorkspace() {
  const OwnSettings settings;
  const auto areOfProfile = [](Kept& f) {
    return f.window.workspaces().current() == QStringLiteral("profile") &&
           f.window.panes().dock(QStringLiteral("roofline")).isVisible() &&
           !f.window.panes().dock(QStringLiteral("inspector")).isVisible();
  };
  Kept killed(QString{});
  QVERIFY(killed.window.workspaces().show(QStringLiteral("profile")));
  QVERIFY(areOfProfile(killed));
  Kept next(QString{});
  QVERIFY(areOfProfile(next));
  QVERIFY(next.window.workspaces().show(QStringLiteral("design")));
  QVERIFY(next.window.panes().dock(QStringLiteral("inspector")).isVisible());
}

void WindowTest::aPaneBehindAnotherComesToTheFront() {
  Fixture f(smallPipeline());
  f.window.resize(1366, 728);
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  f.window.panes().show(QStringLiteral("timings"));
  const auto isInFront = [&](const char* id) { return f.window.panes().isInFront(QString::fromLatin1(id)); };
  QTRY_VERIFY(isInFront("timings") && !isInFront("sweep"));
  auto* sweep = named<PaneToggle>(f.window, "Sweep");
  QVERIFY(sweep->isChecked());
  sweep->trigger();  // from the menu
  QTRY_VERIFY(isInFront("sweep"));
  QVERIFY(sweep->isChecked());
  sweep->show();  // from the command palette
  QVERIFY(isInFront("sweep"));
  sweep->trigger();
  QTRY_VERIFY(!f.window.panes().dock(QStringLiteral("sweep")).isVisible());
  QVERIFY(!sweep->isChecked());
}

void WindowTest::theWheelChangesNoBoxWithoutTheKeyboard() {
  Fixture f(smallPipeline());
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  f.window.activateWindow();
  const std::string before = serialize(f.session.pipeline().document());
  QComboBox& recipe = *named<QComboBox>(f.window, "Quantization recipe");
  const auto turn = [&] {
    const QPointF place = recipe.rect().center();
    QWheelEvent event(place, recipe.mapToGlobal(place), {}, {0, -120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase,
                      false);
    QApplication::sendEvent(&recipe, &event);
  };
  turn();
  QCOMPARE(recipe.currentIndex(), 0);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QCOMPARE(recipe.focusPolicy(), Qt::StrongFocus);
  recipe.setFocus();
  QTRY_VERIFY(recipe.hasFocus());
  turn();
  QVERIFY(recipe.currentIndex() > 0);
}

void WindowTest::aHintEndsWithTheNextEdit() {
  Fixture f(smallPipeline());
  const auto isThere = [&] { return hasLabel(*f.window.statusBar(), "Cannot insert here."); };
  const auto say = [&] { Q_EMIT f.window.scene().hint(QStringLiteral("Cannot insert here.")); };
  say();
  QVERIFY(isThere());
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 8}));
  QVERIFY(!isThere());
  say();
  f.session.selection().select({QStringLiteral("fc")});
  QVERIFY(!isThere());
}

/// The pane is covered by its own list while there is nothing to show.
void WindowTest::fusionsOfALargePipelineAreShown() {
  constexpr auto kHead = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {)";
  Fixture f(std::string(kHead) + "}}");
  f.window.resize(1366, 728);
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  f.window.showPane(QStringLiteral("whyNot"));
  QTRY_VERIFY(hasLabel(f.window.fusions(), "No ops yet"));
  std::string ops;
  std::string wires = R"(["x", "act0.x"])";
  constexpr int kLast = 120;
  for (int i = 0; i <= kLast; ++i) {
    const std::string id = "act" + std::to_string(i);
    ops += (i > 0 ? ", " : "") + (R"({"id": ")" + id + R"(", "op": "GELU"})");
    if (i < kLast) wires += R"(, [")" + id + R"(.y", "act)" + std::to_string(i + 1) + R"(.x"])";
  }
  f.session.openText(std::string(kHead) + R"("inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}], "ops": [)" +
                         ops + R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": "act120.y"}]}})",
                     QStringLiteral("large"));
  QVERIFY(waitForAnalysis(f.session));
  QTRY_VERIFY(!hasLabel(f.window.fusions(), "No ops yet"));
}

void WindowTest::theLastFileIsOpenedAgainWhereItWas() {
  const OwnSettings settings;
  const testing::TemporaryFolder folder;
  const QString path = pipelineFile(folder, "a.fuseline");
  const QString other = pipelineFile(folder, "b.fuseline");
  QPointF middle;
  {
    Kept f(path);
    QVERIFY(f.isOpen);
    f.window.canvas().camera().showPlace({40, 30}, 1.5);
    middle = f.window.canvas().camera().middle();
    QVERIFY(f.window.openFile(other));
    QTRY_VERIFY(f.window.canvas().zoom() <= 1.0);  // another file, all of it
    QVERIFY(f.window.openFile(path));
    QTRY_VERIFY(qFuzzyCompare(f.window.canvas().zoom(), 1.5));
    f.window.close();
  }
  Kept again(QString{});
  QCOMPARE(again.window.start().fileToReopen(), path);
  QVERIFY(again.window.openFile(path));
  QTRY_VERIFY(qFuzzyCompare(again.window.canvas().zoom(), 1.5));
  const QPointF moved = again.window.canvas().camera().middle() - middle;
  QVERIFY2(std::abs(moved.x()) < 8.0 && std::abs(moved.y()) < 8.0, "the place in the middle is the same");
  named<QCheckBox>(again.window.startPage(), "Reopen the last pipeline")->setChecked(false);
  QCOMPARE(again.window.start().fileToReopen(), QString());
  named<QCheckBox>(again.window.startPage(), "Reopen the last pipeline")->setChecked(true);
  again.window.canvas().fit();
  again.window.close();
  Kept fitted(path);
  QTRY_VERIFY(fitted.window.canvas().zoom() <= 1.0);  // nothing was chosen any more
}

void WindowTest::aFileThatIsGoneIsNotOpenedAgain() {
  const OwnSettings settings;
  const testing::TemporaryFolder folder;
  const QString path = pipelineFile(folder, "a.fuseline");
  {
    Kept f(path);
    f.window.close();
  }
  QVERIFY(QFile::remove(path));
  QCOMPARE(Kept(QString{}).window.start().fileToReopen(), QString());
  Fixture picture(smallPipeline());  // reads no settings
  QCOMPARE(picture.window.start().fileToReopen(), QString());
}

void WindowTest::filesAreChosenWhereTheyWereLastTime() {
  const OwnSettings settings;
  const testing::TemporaryFolder folder;
  const QString pipeline = pipelineFile(folder, "a.fuseline");
  const QString drawings = toQt((folder.path() / "drawings").string());
  QVERIFY(QDir().mkpath(drawings));
  const FileChoice drawing{.purpose = QStringLiteral("drawing"), .pipeline = pipeline, .ending = QStringLiteral("svg")};
  const FileChoice run{.purpose = QStringLiteral("run"), .pipeline = pipeline};
  {
    Kept f(pipeline);
    QWidget dialog(&f.window, Qt::Dialog);
    QCOMPARE(folderOfChooser([&] { fileToSave(drawing, &dialog); }, drawings), toQt(folder.path().string()));
    QCOMPARE(folderOfChooser([&] { fileToSave(drawing, &f.window); }), drawings);
    QCOMPARE(folderOfChooser([&] { fileToOpen(run, &f.window); }), toQt(folder.path().string()));
    f.window.close();
  }
  Kept again(pipeline);
  QCOMPARE(folderOfChooser([&] { fileToSave(drawing, &again.window); }), drawings);
  QVERIFY(QDir(drawings).removeRecursively());
  QCOMPARE(folderOfChooser([&] { fileToSave(drawing, &again.window); }), toQt(folder.path().string()));
}

void WindowTest::guideOpensAtTheCodeOfAProblem() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetAttribute{"fc", "in_features", 7}));
  QVERIFY(waitForAnalysis(f.session));
  f.window.problems().selectNext(1);
  const QList<QPushButton*> buttons = f.window.problems().findChildren<QPushButton*>();
  const auto explain = std::ranges::find(buttons, QStringLiteral("What does this mean?"),
                                         [](const QPushButton* b) { return b->text(); });
  QVERIFY(explain != buttons.end());
  (*explain)->click();
  auto* guide = f.window.findChild<GuideWindow*>();
  QVERIFY(guide && guide->isVisible());
  QCOMPARE(guide->text().textCursor().block().text(), QStringLiteral("shape-mismatch"));
  QVERIFY(guide->text().viewport()->rect().contains(guide->text().cursorRect().topLeft()));
  // From there the search goes on.
  named<QLineEdit>(*guide, "Find in this page")->setFocus();
  QTest::keyClicks(named<QLineEdit>(*guide, "Find in this page"), QStringLiteral("nested"));
  QCOMPARE(guide->text().textCursor().selectedText(), QStringLiteral("nested"));
}

namespace {
const Shortcuts::Command& commandOf(const Shortcuts& shortcuts, const QString& path) {
  return *std::ranges::find(shortcuts.commands(), path, &Shortcuts::Command::path);
}

QTreeWidgetItem* itemOf(ShortcutsDialog& dialog, const QString& path) {
  return dialog.list().findItems(path, Qt::MatchExactly).value(0);
}
}  // namespace

void WindowTest::keysOfCommandsAreChanged() {
  Fixture f(smallPipeline());
  ShortcutsDialog dialog(f.window.shortcuts());
  QTreeWidgetItem* item = itemOf(dialog, QStringLiteral("Edit > Duplicate"));
  QVERIFY(item);
  QCOMPARE(item->text(1), QStringLiteral("Ctrl+D"));
  dialog.list().setCurrentItem(item);
  QVERIFY(!dialog.assignButton().isEnabled());
  dialog.keys().setKeySequence(QKeySequence(QStringLiteral("Ctrl+Alt+U")));
  dialog.assignButton().click();
  QCOMPARE(itemOf(dialog, QStringLiteral("Edit > Duplicate"))->text(1), QStringLiteral("Ctrl+Alt+U"));
  // The keys do it, and the old ones do not any more.
  f.session.selection().select({QStringLiteral("norm")});
  f.window.canvas().setFocus();
  const std::size_t numOps = f.session.pipeline().document().ops().size();
  QTest::keyClick(&f.window.canvas(), Qt::Key_D, Qt::ControlModifier);
  QCOMPARE(f.session.pipeline().document().ops().size(), numOps);
  QTest::keyClick(&f.window.canvas(), Qt::Key_U, Qt::ControlModifier | Qt::AltModifier);
  QCOMPARE(f.session.pipeline().document().ops().size(), numOps + 1);
  QVERIFY(named<QPushButton>(dialog, "Reset")->isEnabled());
  named<QPushButton>(dialog, "Reset")->click();
  QCOMPARE(itemOf(dialog, QStringLiteral("Edit > Duplicate"))->text(1), QStringLiteral("Ctrl+D"));
}

void WindowTest::keysAreTakenFromTheirFormerCommand() {
  Fixture f(smallPipeline());
  Shortcuts& shortcuts = f.window.shortcuts();
  ShortcutsDialog dialog(shortcuts);
  dialog.list().setCurrentItem(itemOf(dialog, QStringLiteral("Edit > Auto-arrange")));
  dialog.keys().setKeySequence(QKeySequence(QStringLiteral("Ctrl+D")));
  QVERIFY2(dialog.remark().contains(QStringLiteral("Edit > Duplicate")), qPrintable(dialog.remark()));
  dialog.assignButton().click();
  QVERIFY(commandOf(shortcuts, QStringLiteral("Edit > Duplicate")).action->shortcut().isEmpty());
  QCOMPARE(commandOf(shortcuts, QStringLiteral("Edit > Auto-arrange")).action->shortcut(), QKeySequence("Ctrl+D"));
  // No two commands have the same keys as they come, or the later of them could never be reached.
  shortcuts.resetAll();
  for (const Shortcuts::Command& command : shortcuts.commands())
    for (const QKeySequence& keys : command.action->shortcuts()) {
      const Shortcuts::Command* other = shortcuts.holderOf(keys, command);
      QVERIFY2(!other, qPrintable(command.path + QStringLiteral(" and ") + (other ? other->path : QString())));
    }
}

void WindowTest::changedKeysAreKept() {
  const OwnSettings settings;
  QMenuBar menus;
  QAction* open = menus.addMenu(QStringLiteral("&File"))->addAction(QStringLiteral("&Open"));
  open->setShortcut(QKeySequence(QStringLiteral("Ctrl+O")));
  {
    Shortcuts shortcuts(menus, true);
    shortcuts.set(shortcuts.commands().front(), QKeySequence(QStringLiteral("F12")));
  }
  open->setShortcut(QKeySequence(QStringLiteral("Ctrl+O")));
  Shortcuts again(menus, true);
  QCOMPARE(open->shortcut(), QKeySequence(QStringLiteral("F12")));
  again.resetAll();
  QCOMPARE(open->shortcut(), QKeySequence(QStringLiteral("Ctrl+O")));
  QVERIFY(QSettings().allKeys().filter(QStringLiteral("shortcuts/")).isEmpty());
}

void WindowTest::aboutNamesTheDevices() {
  const Json devices =
      Json::parse(R"([{"id": "cuda:0", "name": "NVIDIA H200", "details": {"driver": "580.1", "SMs": 132}},
                                       {"id": "cuda", "name": "GPU", "reason": "The driver is too old."}])");
  const QStringList lines = environmentText(devices).split(u'\n');
  QVERIFY(lines.size() > 4);
  QVERIFY2(QRegularExpression(QStringLiteral("^Built as \\w+ with (GCC|Clang) \\d+\\.")).match(lines[1]).hasMatch(),
           qPrintable(lines[1]));
  QVERIFY(lines[2].startsWith(QStringLiteral("Qt 6")));
  QCOMPARE(lines.mid(4), (QStringList{QStringLiteral("cuda:0: NVIDIA H200"), QStringLiteral("  driver: 580.1"),
                                      QStringLiteral("  SMs: 132"), QStringLiteral("cuda: GPU"),
                                      QStringLiteral("  The driver is too old.")}));
}

void WindowTest::theThemeFollowsTheDesktop() {
  Fixture f(smallPipeline());
  QPalette desktop(Qt::lightGray);
  int numReads = 0;
  const SystemPalette follower(f.theme, [&] {
    ++numReads;
    return desktop;
  });
  f.theme.apply(ThemeChoice::System);
  QCOMPARE(numReads, 0);  // its own change is not the desktop's
  QEvent changed(QEvent::ThemeChange);
  QCoreApplication::sendEvent(f.window.windowHandle(), &changed);
  QVERIFY(!f.theme.isDark());
  desktop = QPalette(Qt::black);
  QCoreApplication::sendEvent(f.window.windowHandle(), &changed);
  QVERIFY(f.theme.isDark());
  QVERIFY(QApplication::palette().color(QPalette::Window).lightness() < 64);
  f.theme.apply(ThemeChoice::Light);
  QEvent palette(QEvent::ApplicationPaletteChange);
  QCoreApplication::sendEvent(qApp, &palette);
  QCOMPARE(numReads, 3);
  QVERIFY2(!f.theme.isDark(), "what was chosen stays");
}

void WindowTest::longMessagesAreShownInFullByAButton() {
  Fixture f(smallPipeline());
  f.window.showMessage(QStringLiteral("Short."));
  QVERIFY(named<QToolButton>(f.window.messageBar(), "Details")->isHidden());
  const QString text = QStringLiteral("fc: it does not fit.\nact: nor does this.");
  f.window.showMessage(text);
  QCOMPARE(f.window.message(), text);
  const auto* label = f.window.messageBar().findChild<QLabel*>();
  QCOMPARE(label->text(), QStringLiteral("fc: it does not fit. …"));
  QString details;
  QTimer::singleShot(0, &f.window, [&] {
    QWidget* dialog = QApplication::activeModalWidget();
    if (!dialog) return;
    details = dialog->findChild<QPlainTextEdit*>()->toPlainText();
    dialog->close();
  });
  QTest::mouseClick(named<QToolButton>(f.window.messageBar(), "Details"), Qt::LeftButton);
  QCOMPARE(details, text);
  f.window.showMessage(QStringLiteral("word ").repeated(200));
  QVERIFY2(label->text().size() <= 302 && label->text().endsWith(QStringLiteral("word …")), qPrintable(label->text()));
}

void WindowTest::theLogOpensTheFolderOfUnsavedWork() {
  Fixture f(smallPipeline());
  const testing::TemporaryFolder folder;
  const QString unsaved = toQt((folder.path() / "unsaved").string());
  Autosave autosave(f.session, unsaved);
  f.window.offerRecovery(autosave);
  FolderWatcher watcher;
  QDesktopServices::setUrlHandler(QStringLiteral("file"), &watcher, "open");
  const QList<QAction*> commands = f.window.log().view()->actions();
  const auto command = std::ranges::find(commands, QStringLiteral("Open the recovery folder"), &QAction::text);
  QVERIFY(command != commands.end());
  (*command)->trigger();
  QDesktopServices::unsetUrlHandler(QStringLiteral("file"));
  QCOMPARE(watcher.opened, QUrl::fromLocalFile(unsaved));
  QVERIFY(QFileInfo(unsaved).isDir());
}

void WindowTest::everyControlHasAName() {
  OpenedRun f(measuredRun(), QStringLiteral("timings"));
  QVERIFY(f.isOpen);
  f.session.selection().select({QStringLiteral("fc")});
  f.window.start().show();
  f.window.showMessage(QStringLiteral("Something."));
  QCOMPARE(namelessIn(f.window).join(u'\n'), QString());
  f.session.selection().select({});
  QCOMPARE(namelessIn(f.window).join(u'\n'), QString());
  QCOMPARE(namelessIn(f.window.helpMenu().showGuide(QStringLiteral("start"))).join(u'\n'), QString());
}

void WindowTest::everyControlOfADialogHasAName_data() {
  QTest::addColumn<QString>("command");
  for (const char* command :
       {"Export pipeline...", "Export drawing...", "Options...", "Keyboard shortcuts", "About Fuseline"})
    QTest::newRow(command) << QString::fromLatin1(command);
}

void WindowTest::everyControlOfADialogHasAName() {
  QFETCH(const QString, command);
  Fixture f(smallPipeline());
  const auto commands = menuCommands(*f.window.menuBar(), MenuFilling::AsTheyStand);
  const auto found = std::ranges::find(commands, command, &MenuCommand::name);
  QVERIFY(found != commands.end());
  std::optional<QStringList> nameless;
  QTimer::singleShot(0, &f.window, [&] {
    QWidget* dialog = QApplication::activeModalWidget();
    if (!dialog) return;
    nameless = namelessIn(*dialog);
    dialog->close();
  });
  found->action->trigger();
  QVERIFY(nameless);
  QCOMPARE(nameless->join(u'\n'), QString());
}

void WindowTest::furtherFilesGetWindowsOfTheirOwn() {
  Fixture f(smallPipeline());
  QStringList asked;
  recordWindows(f, asked);
  f.window.files().openAll({example("llama_mlp"), example("gpt_mlp"), example("linear_bias")});
  QCOMPARE(f.session.pipeline().path(), example("llama_mlp"));
  QCOMPARE(asked, QStringList({example("gpt_mlp"), example("linear_bias")}));

  asked.clear();
  f.window.files().openWindow();
  QCOMPARE(asked, QStringList({QString()}));
  QCOMPARE(f.session.pipeline().path(), example("llama_mlp"));
}

namespace {

/// Whether the window takes the files; the text of its overlay is shown then.
bool dragOver(Fixture& f, const QMimeData& data, Qt::KeyboardModifiers modifiers = {}) {
  QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, modifiers);
  enter.ignore();
  QApplication::sendEvent(&f.window, &enter);
  return enter.isAccepted();
}

}  // namespace

void WindowTest::aDragOfFilesSaysWhatADropDoes() {
  Fixture f(smallPipeline());
  const auto* const overlay = f.window.findChild<DropOverlay*>();
  QVERIFY(overlay && !overlay->isVisible());
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(example("gpt_mlp"))});
  QVERIFY(dragOver(f, data) && overlay->isVisible());
  QVERIFY2(overlay->text().startsWith(QStringLiteral("Open gpt_mlp.fuseline")), qPrintable(overlay->text()));
  QVERIFY(dragOver(f, data, Qt::ControlModifier));
  QCOMPARE(overlay->text(), QStringLiteral("Compare with gpt_mlp.fuseline"));
  data.setUrls({QUrl::fromLocalFile(QStringLiteral("/somewhere/net.onnx")), QUrl::fromLocalFile(example("gpt_mlp"))});
  QVERIFY(dragOver(f, data, Qt::ControlModifier));
  QVERIFY2(overlay->text().startsWith(QStringLiteral("Import net.onnx\nand 1 more")), qPrintable(overlay->text()));
  QDragLeaveEvent leave;
  QApplication::sendEvent(&f.window, &leave);
  QVERIFY(!overlay->isVisible());
}

void WindowTest::withCtrlADroppedFileIsCompared() {
  Fixture f(smallPipeline());
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(example("gpt_mlp"))});
  QVERIFY(dragOver(f, data, Qt::ControlModifier));
  QDropEvent drop(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::ControlModifier);
  QApplication::sendEvent(&f.window, &drop);
  QVERIFY(f.window.comparison().isOn());
  QVERIFY(f.session.pipeline().path().isEmpty());
  QVERIFY(!f.window.findChild<DropOverlay*>()->isVisible());
}

void WindowTest::aDroppedFolderStandsForItsModelOrRun() {
  Fixture f(smallPipeline());
  const testing::TemporaryFolder folder;
  const QString path = toQt(folder.path().string());
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path)});
  QVERIFY2(!dragOver(f, data), "nothing in it can be opened");
  const auto* const overlay = f.window.findChild<DropOverlay*>();
  std::ofstream(folder.path() / "a.fuserun") << "{}";
  QVERIFY(dragOver(f, data));
  QVERIFY2(overlay->text().startsWith(QStringLiteral("Open run a.fuserun")), qPrintable(overlay->text()));
  std::ofstream(folder.path() / "config.json") << "{}";
  QVERIFY(dragOver(f, data));
  QVERIFY2(overlay->text().startsWith(QStringLiteral("Import %1/config.json").arg(QFileInfo(path).fileName())),
           qPrintable(overlay->text()));
}

void WindowTest::filesDroppedTogetherAllOpen() {
  Fixture f(smallPipeline());
  QStringList asked;
  recordWindows(f, asked);
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(example("gpt_mlp")), QUrl::fromLocalFile(example("llama_mlp"))});
  QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&f.window, &enter);
  QVERIFY(enter.isAccepted());
  QDropEvent drop(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&f.window, &drop);
  QCOMPARE(f.session.pipeline().path(), example("gpt_mlp"));
  QCOMPARE(asked, QStringList({example("llama_mlp")}));

  data.setUrls({QUrl::fromLocalFile(example("gpt_mlp")), QUrl(QStringLiteral("https://example.org/a.fuseline"))});
  QDragEnterEvent elsewhere(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  elsewhere.ignore();
  QApplication::sendEvent(&f.window, &elsewhere);
  QVERIFY(!elsewhere.isAccepted());
}

void WindowTest::windowThatCannotOpenIsSaid() {
  Fixture f(smallPipeline());
  QStringList asked;
  recordWindows(f, asked, false);
  f.window.files().openWindows({example("gpt_mlp")});
  QVERIFY2(f.window.message().contains(example("gpt_mlp")), qPrintable(f.window.message()));
}

void WindowTest::editsInAnyOrderSaveTheSameText() {
  const std::vector<Edit> edits = {SetAttribute{"fc", "bias", true},
                                   SetAttribute{"norm", "eps", 0.25},
                                   AddOp{{.id = "drop", .operation = "Dropout"}},
                                   SetAttribute{"norm", "zero_centered_gamma", true},
                                   MoveNode{"y", Position{800, 0}},
                                   MoveNode{"x", Position{0, 0}}};
  const auto savedAfter = [&](bool isReversed) {
    Fixture f(smallPipeline());
    for (std::size_t i = 0; i < edits.size(); ++i)
      if (!f.session.pipeline().apply(edits[isReversed ? edits.size() - 1 - i : i])) return std::string("refused");
    const testing::TemporaryFolder folder;
    const auto path = folder / "saved.fuseline";
    return f.session.pipeline().save(toQt(path.string())) ? *readWholeFile(path, {.what = "pipeline file", .maxMiB = 1})
                                                          : std::string("not saved");
  };
  QCOMPARE(savedAfter(true), savedAfter(false));
  QVERIFY(savedAfter(true).find("\"drop\"") != std::string::npos);
}

void WindowTest::savingWhatWasOpenedChangesNothing() {
  const testing::TemporaryFolder folder;
  const auto path = folder / "swapped.fuseline";
  PipelineDocument document = parseDocument(smallPipeline()).document;
  QVERIFY(applyEdit(document, AddOp{.op = {.id = "alone", .operation = "GELU"}, .index = 0}).hasValue());
  QVERIFY(saveDocument(document, path).hasValue());
  const std::string before = *readWholeFile(path, {.what = "pipeline file", .maxMiB = 1});
  Fixture f(smallPipeline());
  QVERIFY(f.window.openFile(toQt(path.string())));
  QVERIFY(f.session.pipeline().save(toQt(path.string())).hasValue());
  QCOMPARE(*readWholeFile(path, {.what = "pipeline file", .maxMiB = 1}), before);
}

void WindowTest::aBaselineLeavesTheDockAsItIs() {
  OpenedRun f(measuredRun(), QStringLiteral("timings"));
  QVERIFY(f.isOpen);
  const int before = f.window.panes().dock(QStringLiteral("timings")).height();
  QVERIFY(f.session.baselines().pin(f.session.results().lastRun()->record).hasValue());
  QCoreApplication::processEvents();
  QVERIFY(f.window.findChild<BaselineBar*>()->isVisible());
  QCOMPARE(f.window.panes().dock(QStringLiteral("timings")).height(), before);
}

FUSELINE_UI_TEST(WindowTest)

}  // namespace fuseline::ui::window_test

#include "test_ui_window.moc"
