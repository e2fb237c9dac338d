// The base has a session of its own; the two views follow each other.
// SPDX-License-Identifier: Apache-2.0
#include "ui/compare/base_canvas.h"

#include "core/compare/document_difference.h"
#include "core/runtime/measured_pipeline.h"
#include "ui/session/baselines.h"
#include "ui/session/run_files.h"
#include "ui/theme/format.h"

#include <QApplication>
#include <QScopedValueRollback>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>
#include <QWheelEvent>

#include <algorithm>
#include <ranges>

namespace fuseline::ui {

namespace {

/// The base has no baseline of its own to have changed from.
HeatMode modeOfBase(HeatMode mode) { return mode == HeatMode::Change ? HeatMode::Time : mode; }

bool isOf(const RunRecord& record, const PipelineDocument& document) {
  const Result<MeasuredPipeline> measured = measuredPipeline(record);
  return measured && documentDifference(measured->document, document).empty();
}

}  // namespace

BaseCanvas::Parts::Parts(const Session& session, const Theme& theme)
    : base(session.settings()), mirrored(base), scene(base, theme), marks(scene, mirrored, theme, ComparedSide::Old) {}

BaseCanvas::BaseCanvas(Session& session, PipelineComparison& comparison, GraphView& view, const Theme& theme,
                       QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_comparison(comparison),
      m_view(view),
      m_theme(theme),
      m_toggle(new QAction(tr("Side-by-side can&vases"), this)),
      m_canvas(new QGraphicsView(this)),
      m_title(new QLabel(m_canvas)) {
  m_toggle->setCheckable(true);
  m_toggle->setToolTip(tr("Show the other pipeline on the left. Both canvases pan and zoom together."));
  m_title->setContentsMargins(10, 6, 10, 6);
  createCanvas();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_canvas, 1);
  connect(m_toggle, &QAction::toggled, this, &BaseCanvas::refresh);
  connect(&comparison, &PipelineComparison::changed, this, &BaseCanvas::refresh);
  const auto paintGround = [this] { m_canvas->setBackgroundBrush(m_theme.colors().canvas); };
  connect(&theme, &Theme::changed, this, paintGround);
  paintGround();
  connectView();
  hide();
}

void BaseCanvas::createCanvas() {
  m_canvas->setAccessibleName(tr("Canvas of the other pipeline"));
  m_canvas->setLayoutDirection(Qt::LeftToRight);  // as the other one
  m_canvas->setInteractive(false);
  m_canvas->setDragMode(QGraphicsView::ScrollHandDrag);
  m_canvas->setRenderHint(QPainter::Antialiasing);
  m_canvas->setFrameShape(QFrame::NoFrame);
  m_canvas->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_canvas->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_canvas->setTransformationAnchor(QGraphicsView::NoAnchor);
  m_canvas->setResizeAnchor(QGraphicsView::NoAnchor);
  m_canvas->setViewportUpdateMode(QGraphicsView::FullViewportUpdate);
  m_canvas->viewport()->installEventFilter(this);
}

void BaseCanvas::connectView() {
  for (const QScrollBar* bar : {m_view.horizontalScrollBar(), m_view.verticalScrollBar()})
    connect(bar, &QScrollBar::valueChanged, this, &BaseCanvas::followView);
  connect(&m_view, &GraphView::zoomChanged, this, &BaseCanvas::followView);
  for (const QScrollBar* bar : {m_canvas->horizontalScrollBar(), m_canvas->verticalScrollBar()})
    connect(bar, &QScrollBar::valueChanged, this, &BaseCanvas::leadView);
}

void BaseCanvas::createParts() {
  m_parts = std::make_unique<Parts>(m_session, m_theme);
  m_canvas->setScene(&m_parts->scene);
  connect(&m_parts->scene, &GraphScene::itemsChanged, this, &BaseCanvas::followView);
  connect(&m_session.selection(), &Selection::changed, &m_parts->base,
          [this] { m_parts->base.selection().select(m_session.selection().ids()); });
  HeatOverlay& overlay = m_view.graph().measured().overlay();
  connect(&overlay, &HeatOverlay::changed, &m_parts->scene,
          [this, &overlay] { m_parts->scene.measured().overlay().choose(modeOfBase(overlay.mode())); });
  connect(&m_session.baselines(), &Baselines::changed, &m_parts->base, [this] { showTimes(); });
}

void BaseCanvas::refresh() {
  const bool isShown = m_toggle->isChecked() && m_comparison.isOn();
  if (isShown && !m_parts) createParts();
  if (isShown) load();
  const bool isNew = isShown && isHidden();
  setVisible(isShown);
  auto* both = qobject_cast<QSplitter*>(parentWidget());
  if (isNew && both) both->setSizes({both->width() / 2, both->width() / 2});
}

void BaseCanvas::load() {
  const std::shared_ptr<const PipelineDocument>& base = m_comparison.result()->base;
  m_title->setText(tr("Old: <b>%1</b>").arg(m_comparison.baseName().toHtmlEscaped()));
  m_title->adjustSize();
  if (m_shown != base) {
    m_shown = base;
    m_parts->base.setup().setPass(m_session.setup().pass());
    m_parts->base.setup().setRunTarget(m_session.setup().runTarget());
    m_parts->base.setup().setPlanTarget(m_session.setup().planTarget());
    m_parts->base.setup().setRanks(m_session.setup().ranks());
    m_isOfRun = isRunFile(m_comparison.baseFile()) && m_parts->base.openRun(m_comparison.baseFile());
    if (!m_isOfRun)
      m_parts->base.show({.path = m_comparison.baseName(), .loaded = {.document = *base, .isTakenOut = true}});
    m_parts->scene.measured().overlay().choose(modeOfBase(m_view.graph().measured().overlay().mode()));
    m_times.reset();
    showTimes();
  }
  mirror();
}

/// The times are those of the newest baseline of this very pipeline. They stay when it is unpinned.
void BaseCanvas::showTimes() {
  if (!m_shown || m_isOfRun) return;
  const auto newestFirst = m_session.baselines().all() | std::views::reverse;
  const auto found =
      std::ranges::find_if(newestFirst, [&](const Baseline& each) { return isOf(*each.record, *m_shown); });
  if (found == newestFirst.end() || found->record == m_times) return;
  m_times = found->record;
  const RunSetup& setup = m_parts->base.setup();
  m_parts->base.results().takeRun({.record = *m_times,
                                   .document = m_parts->base.pipeline().document(),
                                   .pass = setup.pass(),
                                   .device = setup.runTarget().place(),
                                   .source = setup.tensorSource()});
}

/// From the other side: the document is the base of the base.
void BaseCanvas::mirror() {
  if (m_mirroredOf == m_comparison.result()) return;
  m_mirroredOf = m_comparison.result();
  m_parts->mirrored.start(m_mirroredOf->document, m_session.pipeline().displayName());
}

/// Places are those of the pipelines, so that an op that did not move stands at the same height in both.
void BaseCanvas::followView() {
  if (m_isMoving || isHidden()) return;
  const QScopedValueRollback guard(m_isMoving, true);
  m_canvas->setSceneRect(m_view.sceneRect().united(m_parts->scene.sceneRect()));
  m_canvas->setTransform(m_view.transform());
  m_canvas->centerOn(m_view.camera().middle());
}

void BaseCanvas::leadView() {
  if (m_isMoving || isHidden()) return;
  const QScopedValueRollback guard(m_isMoving, true);
  m_view.camera().showPlace(m_canvas->mapToScene(m_canvas->viewport()->rect().center()), m_view.zoom());
}

void BaseCanvas::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  followView();
}

/// The wheel zooms both, around the same place.
bool BaseCanvas::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &BaseCanvas::followView, Qt::QueuedConnection);
  if (event->type() != QEvent::Wheel) return QWidget::eventFilter(watched, event);
  return QApplication::sendEvent(m_view.viewport(), event);
}

}  // namespace fuseline::ui
