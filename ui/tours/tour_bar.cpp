// The bar of a tour.
// SPDX-License-Identifier: Apache-2.0
#include "ui/tours/tour_bar.h"

#include "ui/session/baselines.h"
#include "ui/theme/message_ground.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace fuseline::ui {

TourBar::TourBar(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_title(new QLabel(this)),
      m_text(new QLabel(this)),
      m_back(new QPushButton(tr("&Back"), this)),
      m_next(new QPushButton(tr("&Next"), this)) {
  setAccessibleName(tr("Guided tour"));
  m_title->setFont(scaledFont(1.0, QFont::DemiBold));
  m_text->setWordWrap(true);
  m_text->setTextFormat(Qt::RichText);
  m_text->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  m_text->setMinimumHeight(2 * m_text->fontMetrics().lineSpacing());  // so that the canvas stays where it is
  auto* stop = new QPushButton(tr("End &tour"), this);
  auto* words = new QVBoxLayout();
  words->setSpacing(2);
  words->addWidget(m_title);
  words->addWidget(m_text);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 8, 8, 8);
  row->addLayout(words, 1);
  for (QPushButton* button : {m_back, m_next, stop}) row->addWidget(button, 0, Qt::AlignVCenter);
  connect(m_back, &QPushButton::clicked, this, &TourBar::back);
  connect(m_next, &QPushButton::clicked, this, &TourBar::next);
  connect(stop, &QPushButton::clicked, this, &TourBar::end);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &TourBar::interrupt);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &TourBar::look);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &TourBar::look);
  connect(&session.selection(), &Selection::changed, this, &TourBar::look);
  connect(&session.baselines(), &Baselines::changed, this, &TourBar::look);
  for (const auto signal : {&Runner::finished, &Runner::numericsFinished})
    connect(&session.runner(), signal, this, &TourBar::look);
  useMessageGround(*this, theme);
  hide();
}

void TourBar::start(const Tour& tour) {
  m_tour = &tour;
  goTo(0);
  show();
}

void TourBar::end() {
  m_tour = nullptr;
  hide();
}

void TourBar::interrupt() {
  if (!m_tour) return;
  Q_EMIT interrupted(tr("The tour “%1” ended because another pipeline was opened. Restart it from Help > Guided tours.")
                         .arg(m_tour->title));
  end();
}

void TourBar::next() {
  if (!m_tour) return;
  m_index + 1 < m_tour->steps.size() ? goTo(m_index + 1) : end();
}

void TourBar::back() {
  if (m_tour && m_index > 0) goTo(m_index - 1);
}

void TourBar::goTo(std::size_t index) {
  m_index = index;
  m_wasDone.reset();
  refresh();
  if (!step()->pane.isEmpty()) Q_EMIT paneWanted(step()->pane);
  look();
}

/// Goes on when the step gets done; one that was done before is left to the user.
void TourBar::look() {
  if (!m_tour || !step()->isDone || m_session.plan().isAnalysing()) return;
  const bool isDone = step()->isDone(m_session);
  const bool wasDone = m_wasDone.value_or(isDone);
  m_next->setEnabled(isDone);
  m_wasDone = isDone;
  if (isDone && !wasDone) next();
}

void TourBar::refresh() {
  m_title->setText(tr("%1: step %2 of %3").arg(m_tour->title).arg(m_index + 1).arg(m_tour->steps.size()));
  m_text->setText(step()->text);
  m_back->setEnabled(m_index > 0);
  m_next->setEnabled(!step()->isDone);  // what comes next speaks of what this step does
  m_next->setToolTip(step()->isDone ? tr("Available when the step is done") : QString());
  m_next->setText(m_index + 1 < m_tour->steps.size() ? tr("&Next") : tr("&Finish"));
}

}  // namespace fuseline::ui
