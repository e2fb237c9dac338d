// The plan dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/plan_panel.h"

#include "ui/fusions/unplanned.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/seen_refresh.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kLaneLabelWidthPx = 92.0;
constexpr double kPlanHeadHeightPx = 20.0;
constexpr double kLaneHeightPx = 36.0;
constexpr double kBoxInsetPx = 3.0;
constexpr double kColumnPaddingPx = 22.0;
constexpr double kMinColumnPx = 70.0;
constexpr double kMaxStretch = 2.4;
constexpr int kSliderWidthPx = 120;
constexpr int kStageMarginPx = 8;

}  // namespace

LanesView::LanesView(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setContextMenuPolicy(Qt::ActionsContextMenu);
  setAccessibleName(tr("Forward and backward plan"));
  connect(&session.selection(), &Selection::changed, this, &LanesView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void LanesView::setLanes(PlanLanes lanes, TipOf tipOf) {
  if (lanes != m_lanes) m_cursor.reset();
  m_lanes = std::move(lanes);
  m_tipOf = std::move(tipOf);
  measureColumns();
  setMinimumWidth(sizeHint().width());
  setAccessibleDescription(
      tr("Forward: %1, backward: %2")
          .arg(counted(static_cast<qsizetype>(m_lanes.forward.size()), tr("entry"), tr("entries")),
               counted(static_cast<qsizetype>(m_lanes.backward.size()), tr("entry"), tr("entries"))));
  updateGeometry();
  update();
}

double LanesView::widthOf(const QString& text) {
  const auto known = m_textWidths.constFind(text);
  return known != m_textWidths.cend()
             ? *known
             : *m_textWidths.insert(text, QFontMetricsF(m_measuredFont).horizontalAdvance(text));
}

/// Columns are as wide as their heads and boxes need; what room is left is shared.
void LanesView::measureColumns() {
  constexpr qsizetype kMostTexts = 100'000;
  const QFont font = scaledFont(0.9);
  if (font != std::exchange(m_measuredFont, font) || m_textWidths.size() > kMostTexts) m_textWidths.clear();
  std::vector<double> widths;
  for (const QString& id : m_lanes.columns) {
    widths.push_back(std::max(kMinColumnPx, widthOf(id) + kColumnPaddingPx));
  }
  for (const auto* lane : {&m_lanes.forward, &m_lanes.backward}) {
    for (const LaneBox& box : *lane) {
      const double wanted = widthOf(box.label) + kColumnPaddingPx;
      const auto first = widths.begin() + box.firstColumn;
      const auto last = widths.begin() + box.lastColumn + 1;
      double sum = 0;
      for (auto width = first; width != last; ++width) sum += *width;
      const double missing = std::max(0.0, wanted - sum) / static_cast<double>(last - first);
      for (auto width = first; width != last; ++width) *width += missing;
    }
  }
  m_columnEdges = {kLaneLabelWidthPx};
  for (const double columnWidth : widths) m_columnEdges.push_back(m_columnEdges.back() + columnWidth);
}

double LanesView::columnLeft(int column) const {
  const double edge = m_columnEdges[static_cast<std::size_t>(column)];
  const double used = m_columnEdges.back() - kLaneLabelWidthPx;
  const double room = width() - kLaneLabelWidthPx - 8;
  return used <= 0 || room <= used
             ? edge
             : kLaneLabelWidthPx + (edge - kLaneLabelWidthPx) * std::min(room / used, kMaxStretch);
}

QSize LanesView::sizeHint() const {
  const double width = m_columnEdges.empty() ? kLaneLabelWidthPx : m_columnEdges.back();
  return {static_cast<int>(std::ceil(width)) + 8, static_cast<int>(kPlanHeadHeightPx + 2 * kLaneHeightPx) + 8};
}

QRectF LanesView::boxArea(const LaneBox& box, bool isBackward) const {
  const double left = columnLeft(box.firstColumn);
  const double top = kPlanHeadHeightPx + (isBackward ? kLaneHeightPx : 0);
  return QRectF(left, top, columnLeft(box.lastColumn + 1) - left, kLaneHeightPx)
      .adjusted(kBoxInsetPx, kBoxInsetPx, -kBoxInsetPx, -kBoxInsetPx);
}

std::optional<LanesView::Place> LanesView::placeAt(QPointF position) const {
  for (const bool isBackward : {false, true})
    for (std::size_t index = 0; index < lane(isBackward).size(); ++index)
      if (boxArea(lane(isBackward)[index], isBackward).contains(position)) return Place{isBackward, index};
  return std::nullopt;
}

bool LanesView::isSelected(const LaneBox& box) const {
  return std::ranges::any_of(box.owners, [&](const QString& id) { return m_session.selection().ids().contains(id); });
}

bool LanesView::isExactlySelected(const LaneBox& box) const {
  return m_session.selection().ids() == QSet<QString>(box.owners.begin(), box.owners.end());
}

void LanesView::select(Place place) {
  m_cursor = place;
  const LaneBox& box = boxOf(place);
  m_session.selection().selectFusion(QSet<QString>(box.owners.begin(), box.owners.end()), box.rule);
  Q_EMIT chosen(boxArea(box, place.isBackward).toAlignedRect());
  update();
}

/// Brings a selection made elsewhere into view.
void LanesView::followSelection() {
  if (const auto place = current()) Q_EMIT revealed(boxArea(boxOf(*place), place->isBackward).toAlignedRect());
  update();
}

/// Several boxes may be of the same op, so that the selection alone does not say which one it is.
std::optional<LanesView::Place> LanesView::current() const {
  if (m_cursor && isExactlySelected(boxOf(*m_cursor))) return m_cursor;
  for (const bool isBackward : {false, true}) {
    const auto& boxes = lane(isBackward);
    const auto found = std::ranges::find_if(boxes, [&](const LaneBox& box) { return isSelected(box); });
    if (found != boxes.end()) return Place{isBackward, static_cast<std::size_t>(found - boxes.begin())};
  }
  return std::nullopt;
}

const LaneBox* LanesView::currentBox() const {
  const auto place = current();
  return place ? &boxOf(*place) : nullptr;
}

/// The box of the other lane that stands nearest.
std::optional<LanesView::Place> LanesView::acrossFrom(Place place) const {
  const auto middle = [](const LaneBox& box) { return box.firstColumn + box.lastColumn; };
  const auto distance = [&, here = middle(boxOf(place))](const LaneBox& box) { return std::abs(middle(box) - here); };
  const auto& boxes = lane(!place.isBackward);
  if (boxes.empty()) return std::nullopt;
  const auto nearest = std::ranges::min_element(boxes, {}, distance);
  return Place{!place.isBackward, static_cast<std::size_t>(nearest - boxes.begin())};
}

/// Where an arrow key leads; nullopt where it leads nowhere.
std::optional<LanesView::Place> LanesView::neighbour(int key) const {
  const bool isSideways = key == Qt::Key_Left || key == Qt::Key_Right;
  if (!isSideways && key != Qt::Key_Up && key != Qt::Key_Down) return std::nullopt;
  const auto from = current();
  if (!from) return m_lanes.forward.empty() ? std::nullopt : std::optional(Place{});
  if (!isSideways) return from->isBackward == (key == Qt::Key_Up) ? acrossFrom(*from) : std::nullopt;
  const std::size_t size = lane(from->isBackward).size();
  return Place{from->isBackward, (from->index + (key == Qt::Key_Right ? 1 : size - 1)) % size};
}

void LanesView::mousePressEvent(QMouseEvent* event) {
  if (const auto place = placeAt(event->position())) select(*place);
}

void LanesView::keyPressEvent(QKeyEvent* event) {
  const auto next = neighbour(event->key());
  next ? select(*next) : QWidget::keyPressEvent(event);
}

bool LanesView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto place = placeAt(help->pos());
    const auto tip = [&] { return m_tipOf(boxOf(*place), place->isBackward ? Phase::Backward : Phase::Forward); };
    place ? QToolTip::showText(help->globalPos(), tip(), this) : QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void LanesView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  update();
}

/// A long plan is much wider than what is seen of it.
void LanesView::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setClipRect(event->rect());
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_lanes.columns.isEmpty()) return;
  paintHeads(painter);
  paintLane(painter, false);
  paintLane(painter, true);
  if (hasFocus()) paintCursor(painter);
}

void LanesView::paintHeads(QPainter& painter) const {
  const QRectF seen = painter.clipBoundingRect();
  painter.setFont(scaledFont(0.85));
  for (int column = 0; column < m_lanes.columns.size(); ++column) {
    const double left = columnLeft(column);
    const double right = columnLeft(column + 1);
    if (right < seen.left() || left > seen.right()) continue;
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QRectF(left, 0, right - left, kPlanHeadHeightPx), Qt::AlignCenter, m_lanes.columns[column]);
    painter.setPen(QPen(m_theme.colors().grid, 1, Qt::DotLine));
    painter.drawLine(QPointF(right, 4), QPointF(right, kPlanHeadHeightPx + 2 * kLaneHeightPx));
  }
}

void LanesView::paintLane(QPainter& painter, bool isBackward) const {
  const double top = kPlanHeadHeightPx + (isBackward ? kLaneHeightPx : 0);
  painter.setFont(scaledFont(0.9, QFont::DemiBold));
  painter.setPen(isBackward ? m_theme.colors().backward : m_theme.colors().forward);
  painter.drawText(QRectF(10, top, kLaneLabelWidthPx - 12, kLaneHeightPx), Qt::AlignVCenter | Qt::AlignLeft,
                   isBackward ? tr("← Backward") : tr("Forward →"));
  const auto& boxes = isBackward ? m_lanes.backward : m_lanes.forward;
  const QRectF seen = painter.clipBoundingRect();
  for (const LaneBox& box : boxes)
    if (boxArea(box, isBackward).intersects(seen)) paintBox(painter, box, isBackward);
  if (!boxes.empty() || !isBackward) return;
  painter.setPen(m_theme.colors().dimText);
  painter.drawText(QRectF(kLaneLabelWidthPx, top, width() - kLaneLabelWidthPx, kLaneHeightPx), Qt::AlignVCenter,
                   m_session.setup().pass() == ExecutionMode::Inference ? tr("not in a forward-only run") : QString());
}

void LanesView::paintBox(QPainter& painter, const LaneBox& box, bool isBackward) const {
  const ThemeColors& colors = m_theme.colors();
  const QColor line = box.isJoint ? colors.joint : isBackward ? colors.backward : colors.forward;
  QPainterPath shape;
  shape.addRoundedRect(boxArea(box, isBackward), 5, 5);
  painter.fillPath(shape, colors.node);
  if (box.isFused) {
    QColor fill = line;
    fill.setAlpha(isBackward || box.isJoint ? 70 : 44);
    painter.fillPath(shape, QBrush(fill, box.isJoint  ? Qt::DiagCrossPattern
                                         : isBackward ? Qt::BDiagPattern
                                                      : Qt::SolidPattern));
  }
  QPen pen(isSelected(box) ? colors.accent : box.isFused ? line : colors.border, isSelected(box) ? 2.4 : 1.2);
  if (box.isFused && isBackward && !isSelected(box)) pen.setStyle(Qt::DashLine);
  painter.strokePath(shape, pen);
  painter.setFont(scaledFont(0.9, box.isFused ? QFont::DemiBold : QFont::Normal));
  const QRectF text = boxArea(box, isBackward).adjusted(6, 0, -6, 0);
  const QString fitted = QFontMetricsF(painter.font()).elidedText(box.label, Qt::ElideRight, text.width());
  if (box.isFused) {
    const double textWidth = QFontMetricsF(painter.font()).horizontalAdvance(fitted) + 8;
    QPainterPath ground;
    ground.addRoundedRect(QRectF(text.center().x() - textWidth / 2, text.center().y() - 10, textWidth, 20), 4, 4);
    painter.fillPath(ground, colors.node);
  }
  painter.setPen(colors.text);
  painter.drawText(text, Qt::AlignCenter, fitted);
}

/// Marks the box of the selected op from which the arrow keys continue.
void LanesView::paintCursor(QPainter& painter) const {
  const auto place = current();
  if (!place) return;
  painter.setPen(QPen(m_theme.colors().accent, 1.4, Qt::DotLine));
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(boxArea(boxOf(*place), place->isBackward).adjusted(-3, -3, 3, 3), 7, 7);
}

namespace {

/// " · planned for sm_100, one of 2 ranks"; empty for the machine at hand.
QString targetText(const PlanTarget& target, int ranks) {
  QStringList parts;
  if (!target.architecture.empty()) parts.append(toQt(target.architecture));
  if (ranks > 1) parts.append(PlanPanel::tr("one of %1 ranks").arg(ranks));
  return parts.isEmpty() ? QString() : PlanPanel::tr("  ·  planned for %1").arg(parts.join(QStringLiteral(", ")));
}

}  // namespace

PlanPanel::PlanPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_summary(new ElidedLabel(this)),
      m_unplanned(new QLabel(this)),
      m_stage(new QSlider(Qt::Horizontal, this)),
      m_stageName(new QLabel(this)),
      m_lanesView(new LanesView(session, theme)) {
  auto* area = new QScrollArea(this);
  area->setAccessibleName(tr("Plan"));
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setFocusPolicy(Qt::ClickFocus);  // Tab goes to the lanes
  area->setWidget(m_lanesView);
  area->setMinimumHeight(m_lanesView->sizeHint().height() + 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(makeHead());
  layout->addWidget(area, 1);
  const auto scrollTo = [area](const QRect& box) {
    area->ensureVisible(box.center().x(), box.center().y(), box.width() / 2 + 8, box.height() / 2);
  };
  connect(m_lanesView, &LanesView::chosen, area, scrollTo);
  connect(m_lanesView, &LanesView::revealed, area, scrollTo);
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { refresh(); },
      [&session] { return session.plan().isAnalysing(); });
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, seen, &SeenRefresh::request);
  refresh();
}

/// The slider at its right end: the plan as it is.
QLayout* PlanPanel::makeHead() {
  for (QLabel* text : {static_cast<QLabel*>(m_summary), m_unplanned}) text->setContentsMargins(10, 3, 10, 3);
  connect(m_unplanned, &QLabel::linkActivated, &m_session, &Session::problemsWanted);
  m_stage->setRange(0, static_cast<int>(kFusionStages.size()) - 1);
  m_stage->setValue(m_stage->maximum());
  m_stage->setPageStep(1);
  m_stage->setTickPosition(QSlider::TicksBelow);
  m_stage->setFixedWidth(kSliderWidthPx);
  m_stage->setAccessibleName(tr("Stage of the fuser"));
  m_stage->setToolTip(
      tr("Shows the result of each stage: basic ops, joint rules (forward and backward together), forward rules, "
         "backward rules, plan"));
  int widest = 0;
  for (const FusionStage each : kFusionStages)
    widest = std::max(widest, m_stageName->fontMetrics().horizontalAdvance(stageName(each)));
  m_stageName->setFixedWidth(widest + kStageMarginPx);
  connect(m_stage, &QSlider::valueChanged, this, &PlanPanel::refresh);
  auto* row = new QHBoxLayout();
  row->setContentsMargins(0, 0, 4, 0);
  row->setSpacing(kStageMarginPx);
  row->addWidget(m_summary, 1);
  row->addWidget(m_unplanned, 1);
  row->addWidget(m_stage);
  row->addWidget(m_stageName);
  return row;
}

QString PlanPanel::summaryText() const {
  const Analysis& analysis = *m_session.plan().analysis();
  if (!analysis.isRunnable()) return QString();
  if (stage() != kFusionStages.back()) return stageSummary(analysis, stage());
  return planSummary(analysis) + targetText(m_session.setup().planTarget(), m_session.setup().ranks());
}

void PlanPanel::refresh() {
  const Analysis& analysis = *m_session.plan().analysis();
  const auto tipOf = [shown = std::weak_ptr(m_session.plan().analysis()), stage = stage()](const LaneBox& box,
                                                                                           Phase phase) {
    const auto still = shown.lock();
    return still ? laneTip(*still, stage, box, phase) : QString();
  };
  m_lanesView->setLanes(analysis.isRunnable() ? planLanes(analysis, stage()) : PlanLanes(), tipOf);
  m_stageName->setText(stageName(stage()));
  m_summary->setWholeText(summaryText());
  m_unplanned->setText(unplannedText(m_session));
  m_summary->setVisible(analysis.isRunnable());
  m_unplanned->setVisible(!analysis.isRunnable());
}

}  // namespace fuseline::ui
