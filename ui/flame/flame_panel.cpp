// The flame graph's dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/flame/flame_panel.h"

#include "core/profile/timeline.h"
#include "core/support/atomic_file.h"
#include "ui/fusions/unplanned.h"
#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"

#include <QFileInfo>
#include <QKeyEvent>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>
#include <ostream>

namespace fuseline::ui {

namespace {

constexpr int kSearchPx = 170;

}  // namespace

FlamePanel::FlamePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_plan(new QComboBox(this)),
      m_together(new QCheckBox(tr("Group block instances"), this)),
      m_search(new QLineEdit(this)),
      m_view(new FlameView(session, theme)),
      m_area(new QScrollArea(this)),
      m_head(new PaneHead(*m_caption, this)) {
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setFocusPolicy(Qt::NoFocus);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setWidget(m_view);
  fillHead();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_head);
  layout->addWidget(m_area, 1);
  layout->addWidget(m_empty, 1);
  connect(&session.runner(), &Runner::finished, this, &FlamePanel::follow);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &FlamePanel::follow);
  connect(&session.runner(), &Runner::runningChanged, this, [this] {
    if (!m_session.results().lastRun()) follow();
  });
  connect(&session.plan(), &LivePlan::analysisChanged, this, &FlamePanel::follow);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &FlamePanel::refreshCaption);
  connect(&session.setup(), &RunSetup::passChanged, this, &FlamePanel::refreshCaption);
  connect(m_view, &FlameView::zoomChanged, this, &FlamePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &FlamePanel::refreshCaption);
}

void FlamePanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  auto* bar = new RunFilterBar(m_session, filter, this);
  m_head->add(*bar->button());
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &FlamePanel::follow);
}

void FlamePanel::fillHead() {
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Box width: median time over all rounds. A box contains the boxes below it.\nDouble-click or Return: zoom in; "
         "Backspace: zoom out; Home or Escape: whole plan"));
  m_plan->setAccessibleName(tr("Plan to show"));
  m_together->setToolTip(tr("Show all instances of a block as one box, with the sum of their times"));
  m_search->setPlaceholderText(tr("Search (/)"));
  m_search->setToolTip(tr("Regular expression, such as fc[12] or Linear|GEMM. Enter: next match"));
  m_search->setAccessibleName(tr("Search in the flame graph"));
  m_search->setClearButtonEnabled(true);
  m_search->setMaximumWidth(kSearchPx);
  m_search->installEventFilter(this);
  m_view->installEventFilter(this);
  auto* save = new QPushButton(tr("Save SVG..."), this);
  for (QWidget* control : std::initializer_list<QWidget*>{m_search, m_together, m_plan, save}) m_head->add(*control);
  connect(m_plan, &QComboBox::activated, this, &FlamePanel::refreshBoxes);
  connect(m_together, &QCheckBox::toggled, this, &FlamePanel::refreshBoxes);
  connect(m_search, &QLineEdit::textChanged, this, &FlamePanel::search);
  connect(m_search, &QLineEdit::returnPressed, m_view, &FlameView::selectNextMatch);
  connect(save, &QPushButton::clicked, this, &FlamePanel::askAndSave);
}

QString FlamePanel::emptyText() const {
  const auto& run = m_session.results().lastRun();
  if (!run)
    return whileUnmeasured(m_session, tr("No measurements yet. Press Run (Ctrl+Enter) to see where the time goes."));
  if (!m_view->boxes().empty()) return {};
  if (m_filter && m_filter->isActive()) return tr("No step matches the filter. Remove a filter term.");
  const std::string reason = whyNoTimeline(run->record);
  return tr("This run has no step times: %1. Press Run (Ctrl+Enter) to see where the time goes.").arg(toQt(reason));
}

void FlamePanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (m_isBehind) refresh();
}

/// The key "/" goes to the search, Escape and Down back, before Escape is the window's.
bool FlamePanel::eventFilter(QObject* watched, QEvent* event) {
  const bool isPress = event->type() == QEvent::KeyPress;
  if (!isPress && event->type() != QEvent::ShortcutOverride) return QWidget::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool goesBack = watched == m_search && (key->key() == Qt::Key_Escape || key->key() == Qt::Key_Down);
  const bool goesToSearch = watched == m_view && key->text() == QStringLiteral("/");
  if (!goesBack && !goesToSearch) return false;
  event->accept();
  if (!isPress) return true;
  if (goesBack && key->key() == Qt::Key_Escape) m_search->clear();
  (goesBack ? static_cast<QWidget*>(m_view) : m_search)->setFocus(Qt::ShortcutFocusReason);
  return true;
}

void FlamePanel::follow() {
  m_isBehind = true;
  if (isVisible()) refresh();
}

void FlamePanel::refresh() {
  m_isBehind = false;
  refreshPlans();
  refreshBoxes();
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_area->setVisible(nothing.isEmpty());
  m_head->setVisible(nothing.isEmpty());
}

/// The fused one first.
void FlamePanel::refreshPlans() {
  const auto& run = m_session.results().lastRun();
  const QString chosen = m_plan->currentText();
  m_plan->clear();
  if (!run) return;
  for (auto variant = run->record.variants.rbegin(); variant != run->record.variants.rend(); ++variant)
    m_plan->addItem(toQt(variant->name));
  m_plan->setCurrentIndex(std::max(0, m_plan->findText(chosen)));
  m_plan->setVisible(m_plan->count() > 1);
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void FlamePanel::refreshBoxes() {
  const auto& run = m_session.results().lastRun();
  const Graph* graph = graphOfRun(m_session);
  const bool isFiltered = run && m_filter && m_filter->isActive();
  const RunRecord kept = isFiltered ? m_filter->filtered(*run, graph) : RunRecord();
  const RunRecord* record = isFiltered ? &kept : run ? &run->record : nullptr;
  const VariantRecord* variant = record ? record->variant(m_plan->currentText().toStdString()) : nullptr;
  const Instances instances = m_together->isChecked() ? Instances::Together : Instances::Apart;
  m_view->setBoxes(variant ? flameBoxes(*record, *variant, instances, graph) : std::vector<FlameBox>());
  const Json blocks = run && run->record.pipeline.is_object() ? run->record.pipeline.value("blocks", Json()) : Json();
  m_together->setVisible(!blocks.empty());
}

void FlamePanel::search() {
  m_view->setSearch(QRegularExpression(m_search->text(), QRegularExpression::CaseInsensitiveOption));
  refreshCaption();
}

/// "fc1: 4 boxes, 21.5 % of the plan".
QString FlamePanel::searchText() const {
  if (m_search->text().isEmpty()) return {};
  const QRegularExpression expression(m_search->text());
  if (!expression.isValid()) return tr("Invalid regular expression: %1").arg(expression.errorString());
  if (m_view->numMatches() == 0) return tr("No matches");
  return tr("%1 found, %2 % of the plan")
      .arg(counted(m_view->numMatches(), tr("box"), tr("boxes")))
      .arg(100.0 * m_view->matchedShare(), 0, 'f', 1);
}

void FlamePanel::refreshCaption() {
  const auto& run = m_session.results().lastRun();
  if (!run || m_view->boxes().empty()) return;
  const FlameBox& zoomed = m_view->boxes()[m_view->zoomed()];
  QStringList parts = {tr("<b>%1</b>: %2").arg(zoomed.label.toHtmlEscaped(), formatDurationNs(zoomed.lengthNs()))};
  parts.append(m_view->zoomed() == 0 ? tr("sum of the medians of its steps") : tr("zoomed in; Home: whole plan"));
  if (const QString found = searchText(); !found.isEmpty())
    parts.append(QStringLiteral("<b>%1</b>").arg(found.toHtmlEscaped()));
  if (const QString stale = staleText(*run); !stale.isEmpty())
    parts.append(QStringLiteral("<b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale));
  m_caption->setText(parts.join(QStringLiteral(" · ")));
}

Result<void> FlamePanel::saveSvg(const QString& path) const {
  const QByteArray svg = m_view->toSvg(m_session.pipeline().displayName());
  return writeFileAtomically(path.toStdString(), [&](std::ostream& out) { out.write(svg.constData(), svg.size()); });
}

void FlamePanel::askAndSave() {
  const QString path =
      fileToSave({.purpose = QStringLiteral("drawing"),
                  .title = tr("Save the flame graph"),
                  .patterns = tr("Pictures (*.svg);;All files (*)"),
                  .pipeline = m_session.pipeline().path(),
                  .ending = QStringLiteral("svg"),
                  .name = QFileInfo(m_session.pipeline().displayName()).completeBaseName() + QStringLiteral("-flame")},
                 this);
  if (path.isEmpty()) return;
  const Result<void> saved = saveSvg(path);
  Q_EMIT message(saved ? tr("Flame graph saved to %1.").arg(path) : toQt(saved.error().message));
}

}  // namespace fuseline::ui
