// Guided tours: each step waits for what it asks for, and can be done.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QDockWidget>
#include <QLabel>
#include <QMenuBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>

#include <algorithm>

namespace fuseline::ui::tours_test {

class ToursTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void everyTourBeginsWithATemplateAndPanesThatExist_data();
  void everyTourBeginsWithATemplateAndPanesThatExist();
  void stepGoesOnWhenItIsDone();
  void stepThatWasDoneBeforeIsLeftToTheUser();
  void tourEndsWithAnotherPipelineAndAfterItsLastStep();
  void fusionsAreSwitchedAndSeen();
  void recipesAreSeen();
  void toursAreOnTheStartPageAndInTheMenu();
};

namespace {

const Tour& tour(const char* title) { return *std::ranges::find(tours(), QString::fromLatin1(title), &Tour::title); }

/// A window in which the tour has begun, at this step, counted from 1.
struct OnTour : Fixture {
  explicit OnTour(const char* title, std::size_t step = 1) : Fixture(smallPipeline()), of(tour(title)) {
    window.show();
    window.start().startTour(of);
    isReady = waitForAnalysis(session);
    while (number() < step) window.tourBar().next();
  }
  /// Number of the shown step, from 1; 0: the tour has ended.
  std::size_t number() {
    const TourStep* step = window.tourBar().step();
    return step ? static_cast<std::size_t>(step - of.steps.data()) + 1 : 0;
  }
  bool apply(const Edit& edit) { return session.pipeline().apply(edit) && waitForAnalysis(session); }

  const Tour& of;
  bool isReady = false;
};

Edit inPlace(bool isInPlace) { return SetAttribute{.id = "add", .name = "in_place", .value = isInPlace}; }

}  // namespace

void ToursTest::everyTourBeginsWithATemplateAndPanesThatExist_data() {
  QTest::addColumn<qsizetype>("index");
  for (qsizetype i = 0; i < std::ssize(tours()); ++i)
    QTest::newRow(qPrintable(tours()[static_cast<std::size_t>(i)].title)) << i;
}

void ToursTest::everyTourBeginsWithATemplateAndPanesThatExist() {
  QFETCH(const qsizetype, index);
  const Tour& tour = tours()[static_cast<std::size_t>(index)];
  QVERIFY(findTemplate(tour.pipeline));
  Fixture f(smallPipeline());
  for (const TourStep& step : tour.steps) {
    QVERIFY(!step.text.isEmpty());
    QVERIFY(step.pane.isEmpty() || f.window.paneNames().contains(step.pane));
  }
  f.window.start().startTour(tour);
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.pipeline().displayName(), toQt(tour.pipeline));
  QVERIFY(f.session.plan().analysis()->isRunnable());
  QVERIFY2(!tour.steps.front().isDone || !tour.steps.front().isDone(f.session), "nothing is left to do");
}

void ToursTest::stepGoesOnWhenItIsDone() {
  OnTour f("Make a fusion happen");
  QVERIFY(f.isReady);
  QCOMPARE(f.number(), 1u);
  f.session.selection().select({QStringLiteral("fc1")});
  QCOMPARE(f.number(), 1u);
  f.session.selection().select({QStringLiteral("add")});
  QCOMPARE(f.number(), 2u);
  auto* next = f.window.tourBar().findChildren<QPushButton*>().at(1);
  QTest::mouseClick(next, Qt::LeftButton);  // it waits for what the next step speaks of
  QCOMPARE(f.number(), 2u);
  QVERIFY(!next->isEnabled());
  QVERIFY(f.apply(inPlace(false)));
  QCOMPARE(f.number(), 3u);
  QVERIFY(!f.window.fusions().visibleRegion().isEmpty());

  // The repair that the step speaks of.
  const auto& attempts = f.session.plan().analysis()->report.attempts;
  const auto refused = std::ranges::find_if(attempts, [](const Attempt& attempt) {
    return attempt.rule->name == "ForwardLinearBiasAdd" && !attempt.repairs.empty();
  });
  QVERIFY(refused != attempts.end());
  QVERIFY(f.apply(refused->repairs.front().edit));
  QCOMPARE(f.number(), 4u);
  f.window.tourBar().next();
  QCOMPARE(f.number(), 0u);
  QVERIFY(!f.window.tourBar().isVisible());
}

void ToursTest::stepThatWasDoneBeforeIsLeftToTheUser() {
  OnTour f("Make a fusion happen");
  f.session.selection().select({QStringLiteral("add")});
  QCOMPARE(f.number(), 2u);
  f.window.tourBar().back();
  QCOMPARE(f.number(), 1u);
  f.session.selection().select({QStringLiteral("add"), QStringLiteral("fc2")});
  QCOMPARE(f.number(), 1u);
  f.session.selection().select({});
  f.session.selection().select({QStringLiteral("add")});
  QCOMPARE(f.number(), 2u);
}

void ToursTest::tourEndsWithAnotherPipelineAndAfterItsLastStep() {
  OnTour f("Take it into training code");
  QCOMPARE(f.number(), 1u);
  QTest::mouseClick(f.window.tourBar().findChildren<QPushButton*>().at(1), Qt::LeftButton);
  QCOMPARE(f.number(), 2u);
  QSignalSpy said(&f.window.tourBar(), &TourBar::interrupted);
  f.session.openText(smallPipeline(), QStringLiteral("small"));
  QCOMPARE(f.number(), 0u);
  QCOMPARE(said.count(), 1);
  QVERIFY(said.front().front().toString().contains(QStringLiteral("Take it into training code")));
  f.window.tourBar().next();  // of no tour: nothing happens
  QCOMPARE(f.number(), 0u);
}

void ToursTest::fusionsAreSwitchedAndSeen() {
  OnTour f("See what a fusion is worth", 3);
  QVERIFY(f.isReady);
  QCOMPARE(f.number(), 3u);
  f.session.selection().selectFusion({QStringLiteral("save"), QStringLiteral("norm")},
                                     QStringLiteral("BackwardAddRMSNorm"));
  f.window.scene().commands().toggleFusions();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.number(), 4u);
}

void ToursTest::recipesAreSeen() {
  OnTour f("FP8 against bf16");
  QVERIFY(f.isReady);
  QVERIFY(f.apply(SetRecipe{{{"name", "Float8CurrentScaling"}}}));
  QCOMPARE(f.number(), 2u);
}

void ToursTest::toursAreOnTheStartPageAndInTheMenu() {
  Fixture f(smallPipeline());
  f.window.show();
  f.window.start().show();
  for (const Tour& tour : tours()) {
    const auto buttons = f.window.startPage().findChildren<QToolButton*>();
    QVERIFY(std::ranges::any_of(buttons,
                                [&](const QToolButton* button) { return button->accessibleName() == tour.title; }));
    const auto actions = f.window.menuBar()->findChildren<QAction*>();
    QVERIFY(std::ranges::any_of(actions, [&](const QAction* action) { return action->text() == tour.title; }));
  }
  const auto buttons = f.window.startPage().findChildren<QToolButton*>();
  const auto first = std::ranges::find(buttons, tours().front().title, &QToolButton::accessibleName);
  QTest::mouseClick(*first, Qt::LeftButton);
  QVERIFY(!f.window.startPage().isVisible());
  QVERIFY(f.window.tourBar().isVisible());
  QCOMPARE(f.window.tourBar().step(), &tours().front().steps.front());
}

FUSELINE_UI_TEST(ToursTest)

}  // namespace fuseline::ui::tours_test

#include "test_ui_tours.moc"
