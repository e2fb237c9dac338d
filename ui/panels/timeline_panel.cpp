// The timeline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/timeline_panel.h"

#include "ui/models/run_notes.h"
#include "ui/theme/format.h"

#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

QString methodText(const RunRecord& record) {
  const std::string& timing = record.settings.timing;
  if (timing == "cupti") return TimelinePanel::tr("each kernel as CUPTI saw it");
  return timing == "events" ? TimelinePanel::tr("steps on the device's clock, each launched by itself")
                            : TimelinePanel::tr("steps on the host's clock, with a wait after each");
}

QString captionOf(const LastRun& run) {
  return TimelinePanel::tr("One round of each plan: the one with the median total") + QStringLiteral(" · ") +
         methodText(run.record).toHtmlEscaped();
}

}  // namespace

TimelinePanel::TimelinePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_area(new QScrollArea(this)),
      m_view(new TimelineView(session, theme)) {
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Wheel or W and S zoom · drag or A and D pan · Home shows all, F what is selected\n"
         "Double click or Return zooms to a box, Backspace back · Shift and a drag measure"));
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setFocusPolicy(Qt::NoFocus);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setWidget(m_view);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_caption);
  layout->addWidget(m_area, 1);
  layout->addWidget(m_empty, 1);
  for (const auto signal : {&Session::runFinished, &Session::documentReplaced})
    connect(&session, signal, this, &TimelinePanel::refresh);
  connect(&session, &Session::analysisChanged, this, &TimelinePanel::refresh);
  for (const auto signal : {&Session::documentChanged, &Session::passChanged})
    connect(&session, signal, this, &TimelinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &TimelinePanel::refreshCaption);
  refresh();
}

QString TimelinePanel::emptyText() const {
  const auto& run = m_session.lastRun();
  if (!run) return tr("Nothing measured yet. Press Run (Ctrl+Enter) to see when each step runs.");
  const std::string reason = whyNoTimeline(run->record);
  if (reason.empty()) return {};
  return tr("This run has no timeline: %1. Press Run (Ctrl+Enter) to see when each step runs.").arg(toQt(reason));
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void TimelinePanel::refresh() {
  const auto& run = m_session.lastRun();
  const Analysis& analysis = *m_session.analysis();
  const Graph* graph = run && !run->isStale && analysis.isRunnable() ? &analysis.graph() : nullptr;
  m_view->setTracks(run ? timelineTracks(run->record, graph) : std::vector<TimelineTrack>());
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_area->setVisible(nothing.isEmpty());
  m_caption->setVisible(nothing.isEmpty());
  refreshCaption();
}

void TimelinePanel::refreshCaption() {
  const auto& run = m_session.lastRun();
  if (!run) return;
  QString text = captionOf(*run);
  if (const QString stale = staleText(*run); !stale.isEmpty())
    text += QStringLiteral(" · <b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale);
  m_caption->setText(text);
}

}  // namespace fuseline::ui
