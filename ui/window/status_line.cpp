// Each part of the status line follows what it is about.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/status_line.h"

#include "ui/fusions/planning_note.h"
#include "ui/problems/problems_panel.h"
#include "ui/theme/format.h"

#include <utility>

namespace fuseline::ui {

namespace {
constexpr int kSayingMs = 8000;
}  // namespace

StatusLine::StatusLine(QStatusBar& bar, GraphView& view, Panes& panes, QWidget& progress)
    : QObject(&bar),
      m_bar(bar),
      m_view(view),
      m_panes(panes),
      m_hint(new QLabel(&bar)),
      m_selected(new QLabel(&bar)),
      m_device(new QLabel(&bar)) {
  m_counts =
      addButton(tr("No problems"), tr("Show the problems"), [&panes] { panes.show(QStringLiteral("problems")); });
  m_zoom = addButton(tr("100 %"), tr("Fit all; if everything is visible, zoom to 100 %"), [this] { showNextZoom(); });
  bar.addWidget(m_hint, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{&progress, m_selected, m_device, m_counts, m_zoom})
    bar.addPermanentWidget(widget);
  connect(&view.graph().scope(), &CanvasScope::selectionChanged, this, &StatusLine::showSelected);
  connect(&view.session().setup(), &RunSetup::runTargetChanged, this, &StatusLine::showDevice);
  showDevice();
  connect(&view.graph(), &GraphScene::hint, this, &StatusLine::setHint);
  connect(&view.session().pipeline(), &OpenPipeline::changed, this, &StatusLine::forgetHint);
  connect(&view.graph().scope(), &CanvasScope::selectionChanged, this, &StatusLine::forgetHint);
  connect(&view.session().runner(), &Runner::started, this, &StatusLine::forgetHint);
  connect(&view, &GraphView::zoomChanged, this,
          [this](double factor) { m_zoom->setText(tr("%1 %").arg(qRound(factor * 100))); });
  connect(&panes.get<ProblemsPanel>(), &ProblemsPanel::countsChanged, this, &StatusLine::showProblems);
  bar.addPermanentWidget(new PlanningNote(view.session().pipeline(), view.session().plan(), &bar));
}

QToolButton* StatusLine::addButton(const QString& text, const QString& tip, std::function<void()> run) {
  auto* button = new QToolButton(&m_bar);
  button->setAutoRaise(true);
  button->setText(text);
  button->setToolTip(tip);
  button->setFocusPolicy(Qt::TabFocus);
  connect(button, &QToolButton::clicked, this, std::move(run));
  return button;
}

void StatusLine::setHint(const QString& sentence) {
  if (!sentence.isEmpty()) m_bar.clearMessage();  // which would cover it
  m_hint->setText(sentence);
}

/// It was about what the user had tried before.
void StatusLine::forgetHint() { m_hint->clear(); }

void StatusLine::say(const QString& sentence) { m_bar.showMessage(sentence, kSayingMs); }

void StatusLine::showNextZoom() {
  const double before = m_view.zoom();
  m_view.fit();
  if (qFuzzyCompare(before, m_view.zoom())) m_view.zoomTo(1.0);
}

void StatusLine::showSelected() {
  const qsizetype count = m_view.graph().scope().selection().size();
  m_selected->setText(count == 0 ? QString() : tr("%1 selected").arg(count));
}

/// "cuda:0 sm_90"
void StatusLine::showDevice() {
  const RunTarget& target = m_view.session().setup().runTarget();
  const QString architecture = toQt(target.architecture);
  m_device->setText(architecture.isEmpty() ? toQt(target.device)
                                           : QStringLiteral("%1 %2").arg(toQt(target.device), architecture));
  m_device->setToolTip(tr("Device to plan for and run on"));
}

void StatusLine::showProblems(int numErrors, int numWarnings) {
  const QString text = counted(numErrors, tr("error"), tr("errors")) + QStringLiteral(", ") +
                       counted(numWarnings, tr("warning"), tr("warnings"));
  m_counts->setText(numErrors + numWarnings == 0 ? tr("No problems") : text);
  m_panes.setCount(QStringLiteral("problems"), numErrors + numWarnings);
}

}  // namespace fuseline::ui
