// The panel Tensor: its table over bytes, and captures through a real worker.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QSignalSpy>
#include <QTest>

#include <array>
#include <cmath>
#include <limits>

namespace fuseline::ui::tensor_test {

class TensorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cellsAreTheNumbersOfTheTensor();
  void leadingDimensionsRunDownTheRows();
  void vectorsAreFolded();
  void aMillionRowsAreDrawnAsTheyAreSeen();
  void nonFiniteNumbersAreWordsAndFound();
  void shadingFollowsValuesAndLeavesTextReadable();
  void filesGoWithTheirCapture();
  void captureShowsTheNumbersOfAnOp();
  void whatAFusionNeverStoresIsASentenceAndAWay();
  void rowOfNumericsLeadsToItsTensor();
  void changesMakeTheCaptureStale();
  void editsInAHiddenTabAreSafe();
  void aNewCaptureKeepsThePlace();
  void noCaptureWhileAnythingRuns();
  void failedCaptureIsASentence();
  void olderWorkerIsASentence();
  void aWorkerElsewhereIsASentence();
  void selectionIsCopiedWithTabs();
  void savesTheShownPart();
  void isACommandOfTheCanvas();
};

namespace {

constexpr int kPatienceMs = 60'000;

QStringList worker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

bool hasWorker() { return !QStringLiteral(FUSELINE_PROGRAM).isEmpty(); }

bool waitFor(QSignalSpy& spy) {
  return QTest::qWaitFor([&] { return spy.count() > 0; }, kPatienceMs);
}

/// A model that shows this tensor from a file.
struct ShownTensor {
  ShownTensor(const TensorSpec& spec, const std::vector<double>& values)
      : ShownTensor(Tensor::fromDoubles(spec, values)) {}
  explicit ShownTensor(const Tensor& tensor) : model(theme) {
    path = toQt((folder / "t.safetensors").string());
    isWritten = static_cast<bool>(writeSafetensors(path.toStdString(), {{"t", tensor}}));
    Result<std::shared_ptr<const CapturedFile>> file = CapturedFile::open(path);
    if (file) model.show(summariesOf({{"t", tensor}}).front(), std::move(*file));
  }
  QString cell(int row, int column) const { return model.index(row, column).data().toString(); }
  QString rowName(int row) const { return model.headerData(row, Qt::Vertical).toString(); }

  testing::TemporaryFolder folder;
  QString path;
  bool isWritten = false;
  Theme theme;
  TensorModel model;
};

/// A window with a selected op, whose tensors are captured.
struct CapturedOp : Fixture {
  explicit CapturedOp(const QString& op) : Fixture(smallPipeline(), worker()) {
    window.show();
    session.selection().select({op});
    QSignalSpy captured(&session.runner(), &Runner::tensorsCaptured);
    window.showPane(QStringLiteral("tensor"));
    window.tensor().lookAtSelected();
    isCaptured = waitFor(captured);
  }
  TensorPanel& panel() { return window.tensor(); }

  bool isCaptured = false;
};

}  // namespace

void TensorTest::cellsAreTheNumbersOfTheTensor() {
  const ShownTensor shown({DType::BF16, {2, 3}}, {1.5, -2.0, 0.0, 0.25, 1e30, 3.0});
  QCOMPARE(shown.model.rowCount(), 2);
  QCOMPARE(shown.model.columnCount(), 3);
  QCOMPARE(shown.cell(0, 0), QStringLiteral("1.5"));
  QCOMPARE(shown.cell(0, 1), QStringLiteral("-2"));
  QCOMPARE(shown.cell(1, 0), QStringLiteral("0.25"));
  QVERIFY(shown.model.index(0, 0).data(Qt::ToolTipRole).toString().contains(QStringLiteral("bf16 0x3fc0")));
  QCOMPARE(shown.model.index(1, 0).data(Qt::AccessibleTextRole).toString(), QStringLiteral("0.25 at [1, 0]"));
}

void TensorTest::leadingDimensionsRunDownTheRows() {
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) values.push_back(i);
  const ShownTensor shown({DType::F32, {2, 3, 4}}, values);
  QCOMPARE(shown.model.rowCount(), 6);
  QCOMPARE(shown.cell(4, 2), QStringLiteral("18"));
  QCOMPARE(shown.rowName(4), QStringLiteral("1, 1"));
  QCOMPARE(shown.model.placeOf(18), QStringLiteral("[1, 1, 2]"));
  QCOMPARE(shown.model.elementAt(shown.model.indexOf(18)), 18);
}

/// 20 elements: a row of 16, and one of 4 with nothing behind it.
void TensorTest::vectorsAreFolded() {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(i);
  const ShownTensor shown({DType::I64, {20}}, values);
  QCOMPARE(shown.model.rowCount(), 2);
  QCOMPARE(shown.model.columnCount(), 16);
  QCOMPARE(shown.rowName(1), QStringLiteral("16"));
  QCOMPARE(shown.cell(1, 3), QStringLiteral("19"));
  QCOMPARE(shown.cell(1, 4), QString());
  QVERIFY(!(shown.model.flags(shown.model.index(1, 4)) & Qt::ItemIsSelectable));
}

void TensorTest::aMillionRowsAreDrawnAsTheyAreSeen() {
  Tensor tensor = Tensor::zeros({DType::BF16, {1 << 20, 8}});
  encode(std::array{7.0}, DType::BF16, tensor.data.data() + tensor.data.size() - 2);
  ShownTensor shown(tensor);
  QTableView view;
  view.setModel(&shown.model);
  view.resize(600, 300);
  view.show();
  QElapsedTimer timer;
  timer.start();
  view.scrollToBottom();
  view.grab();
  QVERIFY2(timer.elapsed() < 2000, qPrintable(QString::number(timer.elapsed())));
  QCOMPARE(shown.cell((1 << 20) - 1, 7), QStringLiteral("7"));
  QVERIFY(!shown.model.isCutOff());
}

void TensorTest::nonFiniteNumbersAreWordsAndFound() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(20'000, 1.0);
  values[3] = std::nan("");
  values[10'000] = -kInfinity;
  const ShownTensor shown({DType::F32, {200, 100}}, values);
  QCOMPARE(shown.cell(0, 3), QStringLiteral("NaN"));
  QCOMPARE(shown.cell(100, 0), QStringLiteral("−∞"));
  QVERIFY(shown.model.index(0, 3).data(Qt::FontRole).isValid());
  QVERIFY(!shown.model.index(0, 4).data(Qt::FontRole).isValid());
  QCOMPARE(shown.model.nextNonFinite(-1).value_or(-1), 3);
  QCOMPARE(shown.model.nextNonFinite(3).value_or(-1), 10'000);
  QCOMPARE(shown.model.nextNonFinite(10'000).value_or(-1), 3);
  const ShownTensor finite({DType::F32, {1, 2}}, {1.0, 2.0});
  QVERIFY(!finite.model.nextNonFinite(-1));
}

void TensorTest::shadingFollowsValuesAndLeavesTextReadable() {
  ShownTensor shown({DType::F32, {1, 3}}, {-4.0, 0.0, 4.0});
  QVERIFY(!shown.model.index(0, 0).data(Qt::BackgroundRole).isValid());
  shown.model.setShading(Shading::Value);
  const auto ground = [&](int column) { return shown.model.index(0, column).data(Qt::BackgroundRole).value<QColor>(); };
  QCOMPARE(ground(0), heatColor(0.0));
  QCOMPARE(ground(1), heatColor(0.5));
  QCOMPARE(ground(2), heatColor(1.0));
  for (int column = 0; column < 3; ++column)
    QVERIFY(contrastRatio(ground(column), shown.model.index(0, column).data(Qt::ForegroundRole).value<QColor>()) >=
            4.5);
  shown.model.setShading(Shading::Magnitude);
  QCOMPARE(ground(0), ground(2));
  QVERIFY(!shown.model.index(0, 1).data(Qt::BackgroundRole).isValid());
}

void TensorTest::filesGoWithTheirCapture() {
  auto shown = std::make_unique<ShownTensor>(TensorSpec{DType::F32, {1}}, std::vector{1.0});
  const QString path = shown->path;
  QVERIFY(QFile::exists(path));
  shown->model.clear();
  QCOMPARE(shown->model.rowCount(), 0);
  QVERIFY(!QFile::exists(path));
}

/// A normalized row has the norm sqrt(32); there are 16.
void TensorTest::captureShowsTheNumbersOfAnOp() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  CapturedOp f(QStringLiteral("norm"));
  QVERIFY2(f.isCaptured, qPrintable(f.window.message()));
  const auto& last = f.session.results().lastCapture();
  QVERIFY(last.has_value());
  QVERIFY(last->find("x") && last->find("norm:y") && last->find("grad.norm.weight"));
  QVERIFY(f.panel().tensors()->currentText().startsWith(QStringLiteral("norm:y")));
  QCOMPARE(f.panel().table().model().rowCount(), 16);
  QCOMPARE(f.panel().table().model().columnCount(), 32);
  double squares = 0.0;
  for (int column = 0; column < 32; ++column) squares += std::pow(f.panel().table().model().valueOf(column), 2);
  QVERIFY2(std::abs(squares - 32.0) < 0.5, qPrintable(QString::number(squares)));
  QVERIFY(f.panel().caption().contains(QStringLiteral("no NaN, no ∞")));
  f.panel().table().goToLargest();
  const std::int64_t largest = f.panel().table().model().elementAt(f.panel().table().view()->currentIndex());
  QCOMPARE(std::abs(f.panel().table().model().valueOf(largest)),
           std::max(std::abs(last->find("norm:y")->statistics.min), last->find("norm:y")->statistics.max));
}

void TensorTest::whatAFusionNeverStoresIsASentenceAndAWay() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(residualPipeline(true), worker());
  f.window.show();
  f.window.lookAt(QStringLiteral("fc:y"));
  TensorPanel& panel = f.window.tensor();
  QVERIFY(hasLabel(panel, "fc:y is never stored: ForwardLinearBiasAdd(fc, add)"));
  QVERIFY(!named<QPushButton>(panel, "Capture")->isEnabled());
  QVERIFY(!f.session.runner().isRunning());
  QSignalSpy captured(&f.session.runner(), &Runner::tensorsCaptured);
  QPushButton* unfused = nullptr;
  for (QPushButton* button : panel.findChildren<QPushButton*>())
    if (button->isVisible() && button != named<QPushButton>(panel, "Capture")) unfused = button;
  QVERIFY(unfused);
  unfused->click();
  QVERIFY2(waitFor(captured), qPrintable(f.window.message()));
  QVERIFY(panel.caption().contains(QStringLiteral("fc:y")));
  QVERIFY(panel.table().model().rowCount() > 0);
}

void TensorTest::rowOfNumericsLeadsToItsTensor() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(smallPipeline(), worker());
  f.window.show();
  QSignalSpy measured(&f.session.runner(), &Runner::numericsFinished);
  f.session.runner().measureNumerics();
  QVERIFY2(waitFor(measured), qPrintable(f.window.message()));
  QTreeView* view = f.window.numerics().view();
  const QModelIndexList rows = view->model()->match(view->model()->index(0, 0), Qt::DisplayRole,
                                                    QStringLiteral("grad.fc.weight"), 1, Qt::MatchExactly);
  QCOMPARE(rows.size(), 1);
  view->setCurrentIndex(rows.front());
  QSignalSpy captured(&f.session.runner(), &Runner::tensorsCaptured);
  view->actions().constFirst()->trigger();
  QVERIFY2(waitFor(captured), qPrintable(f.window.message()));
  QVERIFY(f.window.tensor().isVisible());
  QVERIFY(f.window.tensor().caption().contains(QStringLiteral("grad.fc.weight")));
  QCOMPARE(f.window.tensor().table().model().rowCount(), 64);
}

void TensorTest::changesMakeTheCaptureStale() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  CapturedOp f(QStringLiteral("norm"));
  QVERIFY2(f.isCaptured, qPrintable(f.window.message()));
  QVERIFY(!f.panel().caption().contains(QStringLiteral("capture again")));
  QVERIFY(f.session.pipeline().apply(SetAttribute{"norm", "eps", 0.5}));
  QVERIFY(f.session.results().lastCapture()->isStale);
  QVERIFY(f.panel().caption().contains(QStringLiteral("capture again")));
  f.session.pipeline().undo();
  QVERIFY(!f.panel().caption().contains(QStringLiteral("capture again")));
  f.session.openText(smallPipeline(), QStringLiteral("other"));
  QVERIFY(!f.session.results().lastCapture());
  QCOMPARE(f.panel().table().model().rowCount(), 0);
}

/// The panel lists nothing while it is hidden, and knows what its list is of.
void TensorTest::editsInAHiddenTabAreSafe() {
  Fixture f(smallPipeline());
  f.window.show();
  f.window.showPane(QStringLiteral("tensor"));
  QVERIFY(f.window.tensor().tensors()->count() > 8);
  f.window.showPane(QStringLiteral("timings"));
  f.session.openText(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "f32", "shape": [2, 2]}],
    "ops": [{"id": "act", "op": "GELU", "attributes": {}}],
    "wires": [["x", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]}})",
                     QStringLiteral("other"));
  QVERIFY(waitForAnalysis(f.session));
  f.session.selection().select({QStringLiteral("act")});
  f.window.showPane(QStringLiteral("tensor"));
  QCOMPARE(f.window.tensor().tensors()->count(), 4);  // x, y and their gradients
}

void TensorTest::aNewCaptureKeepsThePlace() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  CapturedOp f(QStringLiteral("norm"));
  QVERIFY2(f.isCaptured, qPrintable(f.window.message()));
  f.panel().table().view()->setCurrentIndex(f.panel().table().model().index(5, 7));
  QVERIFY(f.session.pipeline().apply(SetAttribute{"norm", "eps", 0.5}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.panel().table().view()->currentIndex(), f.panel().table().model().index(5, 7));
  const double before = f.panel().table().model().valueOf(5 * 32 + 7);
  QSignalSpy captured(&f.session.runner(), &Runner::tensorsCaptured);
  named<QPushButton>(f.panel(), "Capture")->click();
  QVERIFY2(waitFor(captured), qPrintable(f.window.message()));
  QCOMPARE(f.panel().table().view()->currentIndex(), f.panel().table().model().index(5, 7));
  QVERIFY(std::abs(f.panel().table().model().valueOf(5 * 32 + 7)) < std::abs(before));
}

void TensorTest::noCaptureWhileAnythingRuns() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(smallPipeline(), worker());
  f.window.show();
  f.window.showPane(QStringLiteral("tensor"));
  QVERIFY(named<QPushButton>(f.window.tensor(), "Capture")->isEnabled());
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY(!named<QPushButton>(f.window.tensor(), "Capture")->isEnabled());
  f.session.runner().captureTensors({"y"}, PlanChoice::Fused);
  f.session.runner().cancel();
  QVERIFY(waitFor(finished));
  QVERIFY(named<QPushButton>(f.window.tensor(), "Capture")->isEnabled());
  QVERIFY(!f.session.results().lastCapture());
}

void TensorTest::failedCaptureIsASentence() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(smallPipeline(), worker());
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().captureTensors({"no.such"}, PlanChoice::Fused);
  QVERIFY(waitFor(failed));
  QVERIFY2(f.window.message().contains(QStringLiteral("no.such: there is no tensor and no op of this name")),
           qPrintable(f.window.message()));
  QVERIFY(!f.session.runner().isRunning());
}

void TensorTest::olderWorkerIsASentence() {
  const QString answer = toQt(encode(WorkerEvent(ErrorEvent{0, {"/type: \"capture\" is not known."}})));
  Fixture f(smallPipeline(), {QStringLiteral("sh"), QStringLiteral("-c"),
                              QStringLiteral("while read -r line; do echo '%1'; done").arg(answer)});
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().captureTensors({"y"}, PlanChoice::Fused);
  QVERIFY(waitFor(failed));
  QVERIFY(f.window.message().contains(QStringLiteral("is not known")));
  QVERIFY(!f.session.runner().isRunning());
}

/// It has written its file where this window does not see it.
void TensorTest::aWorkerElsewhereIsASentence() {
  const QString answer = toQt(encode(WorkerEvent(CapturedEvent{.id = 1, .tensors = {}})));
  Fixture f(smallPipeline(), {QStringLiteral("sh"), QStringLiteral("-c"),
                              QStringLiteral("while read -r line; do echo '%1'; done").arg(answer)});
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().captureTensors({"y"}, PlanChoice::Fused);
  QVERIFY(waitFor(failed));
  QVERIFY2(f.window.message().contains(QStringLiteral("on the machine of the run")), qPrintable(f.window.message()));
  QVERIFY(!f.session.results().lastCapture());
  QVERIFY(!f.session.runner().isRunning());
}

void TensorTest::selectionIsCopiedWithTabs() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  CapturedOp f(QStringLiteral("norm"));
  QVERIFY2(f.isCaptured, qPrintable(f.window.message()));
  const TensorModel& model = f.panel().table().model();
  f.panel().table().view()->selectionModel()->select(QItemSelection(model.index(0, 0), model.index(1, 1)),
                                                     QItemSelectionModel::ClearAndSelect);
  f.panel().table().view()->setFocus();
  QTest::keyClick(f.panel().table().view(), Qt::Key_C, Qt::ControlModifier);
  const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
  QCOMPARE(QGuiApplication::clipboard()->text(),
           text(0, 0) + u'\t' + text(0, 1) + u'\n' + text(1, 0) + u'\t' + text(1, 1) + u'\n');
}

void TensorTest::savesTheShownPart() {
  if (!hasWorker()) QSKIP("The program fuseline is not part of this build.");
  CapturedOp f(QStringLiteral("norm"));
  QVERIFY2(f.isCaptured, qPrintable(f.window.message()));
  const testing::TemporaryFolder folder;
  QVERIFY(f.panel().save(toQt((folder / "t.safetensors").string())));
  const Result<NamedTensors> saved = readSafetensors(folder / "t.safetensors");
  QVERIFY(saved.hasValue());
  QCOMPARE(saved->front().first, std::string("norm:y"));
  QCOMPARE(saved->front().second.toDoubles().front(), f.panel().table().model().valueOf(0));
  QVERIFY(f.panel().save(toQt((folder / "t.npy").string())));
  QFile npy(toQt((folder / "t.npy").string()));
  QVERIFY(npy.open(QIODevice::ReadOnly));
  QVERIFY(npy.readAll().startsWith("\x93NUMPY"));
  Fixture empty(smallPipeline());
  QVERIFY(!empty.window.tensor().save(toQt((folder / "no.npy").string())));
}

void TensorTest::isACommandOfTheCanvas() {
  Fixture f(smallPipeline());
  const auto isLook = [](const QAction* action) { return action->text().contains(QStringLiteral("Inspect tensors")); };
  const QList<QAction*> actions = f.window.canvas().actions();
  const auto look = std::ranges::find_if(actions, isLook);
  QVERIFY(look != actions.end());
  f.window.show();
  (*look)->trigger();
  QVERIFY(f.window.tensor().isVisible());
}

FUSELINE_UI_TEST(TensorTest)

}  // namespace fuseline::ui::tensor_test

#include "test_ui_tensor.moc"
