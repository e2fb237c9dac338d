// Fixtures of the tests of the window.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_support.h"

#include "core/profile/run_file.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/one_backend.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QLabel>
#include <QNativeGestureEvent>
#include <QPointingDevice>
#include <QScrollArea>
#include <QSettings>

#include <algorithm>

namespace fuseline::ui {

bool waitForAnalysis(Session& session) {
  return QTest::qWaitFor([&] { return !session.plan().isAnalysing(); });
}

Fixture::Fixture(const std::string& text, const QStringList& workerCommand)
    : session(SessionSettings{.workerCommand = workerCommand}), window(session, theme, Persistence::None) {
  theme.apply(ThemeChoice::Light);
  window.resize(1400, 900);
  window.show();
  session.openText(text, QStringLiteral("test"));
  waitForAnalysis(session);
  window.canvas().fit();
}

OwnSettings::OwnSettings() {
  QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, toQt(m_folder.path().string()));
  QSettings::setDefaultFormat(QSettings::IniFormat);
  QCoreApplication::setOrganizationName(QStringLiteral("fuseline-tests"));
}

OwnSettings::~OwnSettings() {
  QSettings().clear();
  QSettings::setDefaultFormat(QSettings::NativeFormat);
}

QPoint Fixture::portOnView(const PortRef& port) {
  return window.canvas().mapFromScene(*window.scene().node(port.node)->portPosition(port));
}

RunRecord measuredRun(StepTiming timing) {
  RunSpec settings{.device = "reference", .timing = timing, .warmup = 0, .iterations = 2};
  const auto run = PipelineRun::prepare(parseDocument(smallPipeline()), "small", {.settings = std::move(settings)},
                                        testing::OneBackend(makeReferenceBackend()));
  return *(*run)->measure();
}

OpenedRun::OpenedRun(const RunRecord& record, const QString& pane) : Fixture(residualPipeline(false)) {
  const auto path = folder / "small.fuserun";
  isOpen = saveRunRecord(record, path).hasValue() && window.openFile(toQt(path.string())) && waitForAnalysis(session) &&
           window.showPane(pane) && QTest::qWaitForWindowExposed(&window);
}

void dragMouse(QWidget* viewport, QPoint from, QPoint to) {
  QTest::mouseMove(viewport, from);
  QTest::mousePress(viewport, Qt::LeftButton, {}, from);
  for (int step = 1; step <= 4; ++step) QTest::mouseMove(viewport, from + (to - from) * step / 4);
  QTest::mouseRelease(viewport, Qt::LeftButton, {}, to);
}

QString nameOf(const QObject& object) {
  const auto* widget = qobject_cast<const QWidget*>(&object);
  if (widget && !widget->accessibleName().isEmpty()) return widget->accessibleName();
  return object.property("text").toString().remove(u'&');
}

bool hasLabel(const QObject& parent, const char* text) {
  return std::ranges::any_of(parent.findChildren<QLabel*>(),
                             [&](const QLabel* label) { return label->text().contains(QString::fromUtf8(text)); });
}

void resizePane(QWidget& pane, QSize size) {
  pane.setFixedSize(size);
  QCoreApplication::processEvents();
}

void pinch(QWidget& widget, QPointF position, double factor) {
  QNativeGestureEvent event(Qt::ZoomNativeGesture, QPointingDevice::primaryPointingDevice(), 2, position, position,
                            widget.mapToGlobal(position), factor - 1.0, QPointF());
  QApplication::sendEvent(&widget, &event);
}

}  // namespace fuseline::ui
