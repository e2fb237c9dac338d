// The roofline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/roofline/roofline_panel.h"

#include "ui/fusions/unplanned.h"
#include "ui/roofline/roofline_painter.h"
#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>

#include <algorithm>
#include <iterator>

namespace fuseline::ui {

namespace {

bool isOwnKey(int key) {
  static constexpr int kKeys[] = {Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Home, Qt::Key_End};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

}  // namespace

RooflineView::RooflineView(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Roofline"));
  connect(&session.selection(), &Selection::changed, this, &RooflineView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void RooflineView::setPlot(RooflinePlot plot) {
  m_plot = std::move(plot);
  m_cursor.reset();
  followSelection();
}

QSize RooflineView::minimumSizeHint() const { return {220, 140}; }

// ------------------------------------------------------------------------------------------------------------- places

QRectF RooflineView::areaOf(std::size_t dot) const { return RooflineScale(m_plot, rect()).areaOf(dot); }

std::optional<std::size_t> RooflineView::dotAt(QPointF position) const {
  return RooflineScale(m_plot, rect()).dotAt(position);
}

QString RooflineView::tipAt(QPointF position) const {
  const auto dot = dotAt(position);
  return dot ? m_plot.dots[*dot].tip : QString();
}

bool RooflineView::isSelected(const RooflineDot& dot) const { return dot.isOneOf(m_session.selection().ids()); }

/// Wraps at neither end.
std::optional<std::size_t> RooflineView::besideInPlan(int by) const {
  const auto next = static_cast<std::ptrdiff_t>(*m_cursor) + by;
  if (next < 0 || next >= std::ssize(m_plot.dots)) return std::nullopt;
  const auto dot = static_cast<std::size_t>(next);
  return m_plot.dots[dot].isOfFusedPlan == currentDot()->isOfFusedPlan ? std::optional(dot) : std::nullopt;
}

/// Along an arrow, or to the same step.
std::optional<std::size_t> RooflineView::inOtherPlan() const {
  for (const RooflineArrow& arrow : m_plot.arrows) {
    if (arrow.from == *m_cursor) return arrow.to;
    if (arrow.to == *m_cursor) return arrow.from;
  }
  const RooflineDot& here = *currentDot();
  const auto same = std::ranges::find_if(m_plot.dots, [&](const RooflineDot& dot) {
    return dot.isOfFusedPlan != here.isOfFusedPlan && dot.phase == here.phase && dot.label == here.label;
  });
  if (same == m_plot.dots.end()) return std::nullopt;
  return static_cast<std::size_t>(same - m_plot.dots.begin());
}

/// Where a key leads; nullopt where it leads nowhere.
std::optional<std::size_t> RooflineView::neighbour(int key) const {
  if (m_plot.dots.empty()) return std::nullopt;
  if (!m_cursor || key == Qt::Key_Home) return 0;
  switch (key) {
    case Qt::Key_Left: return besideInPlan(-1);
    case Qt::Key_Right: return besideInPlan(1);
    case Qt::Key_Up:
    case Qt::Key_Down: return inOtherPlan();
    case Qt::Key_End: return m_plot.dots.size() - 1;
    default: return std::nullopt;
  }
}

// ----------------------------------------------------------------------------------------------------------- commands

void RooflineView::select(std::size_t dot) {
  m_cursor = dot;
  const QStringList& owners = m_plot.dots[dot].owners;
  m_session.selection().select(QSet<QString>(owners.begin(), owners.end()));
  describe();
  update();
}

/// Keys go on from what was selected elsewhere.
void RooflineView::followSelection() {
  if (!m_cursor || !isSelected(*currentDot())) {
    const auto selected = std::ranges::find_if(m_plot.dots, [&](const RooflineDot& dot) { return isSelected(dot); });
    m_cursor.reset();
    if (selected != m_plot.dots.end()) m_cursor = static_cast<std::size_t>(selected - m_plot.dots.begin());
  }
  describe();
  update();
}

/// The dot that the keys stand on, else the whole.
void RooflineView::describe() {
  if (const RooflineDot* dot = currentDot()) return setAccessibleDescription(dot->words);
  QStringList parts = {counted(std::ssize(m_plot.dots), tr("step"), tr("steps"))};
  if (m_plot.measured.isKnown()) parts.append(tr("memory %1").arg(formatBandwidth(m_plot.measured.memoryGBps)));
  for (const RooflineCeiling& ceiling : m_plot.measured.ceilings) parts.append(nameOf(ceiling));
  setAccessibleDescription(parts.join(QStringLiteral(", ")));
}

void RooflineView::keyPressEvent(QKeyEvent* event) {
  if (!isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  const auto next = neighbour(event->key());
  if (!next) return;
  select(*next);
  QToolTip::showText(mapToGlobal(areaOf(*next).bottomRight().toPoint()), currentDot()->tip, this);
}

bool RooflineView::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void RooflineView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto dot = dotAt(event->position()))
    select(*dot);
  else
    m_session.selection().select({});
}

void RooflineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_plot.dots.empty()) return;
  const RooflineScale scale(m_plot, rect());
  RooflinePainter(painter, scale, m_session.selection().ids(), hasFocus() ? m_cursor : std::nullopt, m_theme).paint();
}

// -------------------------------------------------------------------------------------------------------------- panel

namespace {

QString textOf(const RooflineLines& lines) {
  QStringList peaks = {RooflinePanel::tr("memory %1").arg(formatBandwidth(lines.memoryGBps))};
  for (const RooflineCeiling& ceiling : lines.ceilings) peaks.append(nameOf(ceiling));
  return peaks.join(QStringLiteral(", "));
}

QString peaksCaption(const RunRecord& record, const RooflinePlot& plot) {
  if (!plot.measured.isKnown())
    return record.peaksNote.empty() ? RooflinePanel::tr("No peaks: this run did not measure them")
                                    : RooflinePanel::tr("No peaks: %1").arg(toQt(record.peaksNote));
  return RooflinePanel::tr("Peaks measured in this run: %1").arg(textOf(plot.measured));
}

}  // namespace

RooflinePanel::RooflinePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_head(new QHBoxLayout),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_view(new RooflineView(session, theme, this)) {
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(tr(
      "The intensity uses the minimum memory traffic and the FLOPs of the math (not those executed). If a dot is above "
      "the memory line, its data were in the cache.\nLeft and Right: previous and next step; Up and Down: other plan"));
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  m_head->addWidget(m_caption, 1);
  layout->addLayout(m_head);
  layout->addWidget(m_view, 1);
  layout->addWidget(m_empty, 1);
  connect(&session.runner(), &Runner::finished, this, &RooflinePanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &RooflinePanel::refresh);
  connect(&session.runner(), &Runner::runningChanged, this, [this] {
    if (!m_session.results().lastRun()) refresh();
  });
  connect(&session.plan(), &LivePlan::analysisChanged, this, &RooflinePanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &RooflinePanel::refreshCaption);
  connect(&session.setup(), &RunSetup::passChanged, this, &RooflinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &RooflinePanel::refreshCaption);
  refresh();
}

void RooflinePanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  auto* bar = new RunFilterBar(m_session, filter, this);
  m_filterButton = bar->button();
  m_head->addWidget(m_filterButton, 0, Qt::AlignTop);
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &RooflinePanel::refresh);
  refresh();
}

QString RooflinePanel::emptyText() const {
  const auto& run = m_session.results().lastRun();
  if (!run)
    return whileUnmeasured(
        m_session, tr("No measurements yet. Press Run (Ctrl+Enter) to compare each step with its roofline limit."));
  if (!m_view->plot().dots.empty()) return {};
  if (m_filter && m_filter->isActive()) return tr("No step that matches the filter has FLOPs. Remove a filter term.");
  return run->record.settings.timesSteps()
             ? tr("This run has no steps with FLOPs.")
             : tr("This run has no step times. Press Run (Ctrl+Enter) to compare each step with its roofline limit.");
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void RooflinePanel::refresh() {
  const auto& run = m_session.results().lastRun();
  const Graph* graph = graphOfRun(m_session);
  const bool isFiltered = run && m_filter && m_filter->isActive();
  m_view->setPlot(isFiltered ? rooflinePlot(m_filter->filtered(*run, graph), graph)
                  : run      ? rooflinePlot(run->record, graph)
                             : RooflinePlot());
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_view->setVisible(nothing.isEmpty());
  m_caption->setVisible(nothing.isEmpty());
  if (m_filterButton) m_filterButton->setVisible(run.has_value());  // there is nothing to filter without one
  refreshCaption();
}

void RooflinePanel::refreshCaption() {
  const auto& run = m_session.results().lastRun();
  if (!run) return;
  QStringList parts = {peaksCaption(run->record, m_view->plot()).toHtmlEscaped()};
  if (const RooflineLines& published = m_view->plot().published; published.isKnown())
    parts.insert(1, tr("dotted: NVIDIA's data sheet, %1").arg(textOf(published)));
  if (const int others = m_view->plot().numWithoutArithmetic; others > 0)
    parts.append(tr("not shown: %1 without FLOPs").arg(counted(others, tr("step"), tr("steps"))));
  QString text = parts.join(QStringLiteral(" · "));
  if (const QString stale = staleText(*run); !stale.isEmpty())
    text += QStringLiteral(" · <b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale);
  m_caption->setText(text);
}

}  // namespace fuseline::ui
