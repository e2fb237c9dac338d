// The timeline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/timeline_panel.h"

#include "ui/models/run_notes.h"
#include "ui/theme/format.h"

#include <QSettings>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

// In these proportions.
constexpr int kTracksPx = 300;
constexpr int kSumsPx = 160;
constexpr auto kSumsKey = "timeline/showsSums";
constexpr auto kSizesKey = "timeline/sizes";

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

TimelinePanel::TimelinePanel(Session& session, const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_area(new QScrollArea(this)),
      m_view(new TimelineView(session, theme)),
      m_sums(new TimelineSums(session, theme, isKept)),
      m_body(new QSplitter(Qt::Vertical, this)),
      m_isKept(isKept),
      m_wantsSums(!isKept || QSettings().value(kSumsKey, true).toBool()) {
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Wheel or W and S zoom · drag or A and D pan · Home shows all, F what is selected\n"
         "Double click or Return zooms to a box, Backspace back · Shift and a drag choose a stretch of rows,\n"
         "R the current box; Q shows and hides the table of what it adds up to"));
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setFocusPolicy(Qt::NoFocus);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setWidget(m_view);
  createBody();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_caption);
  layout->addWidget(m_body, 1);
  layout->addWidget(m_empty, 1);
  for (const auto signal : {&Session::runFinished, &Session::documentReplaced})
    connect(&session, signal, this, &TimelinePanel::refresh);
  connect(&session, &Session::analysisChanged, this, &TimelinePanel::refresh);
  for (const auto signal : {&Session::documentChanged, &Session::passChanged})
    connect(&session, signal, this, &TimelinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &TimelinePanel::refreshCaption);
  refresh();
}

/// The tracks, and below them the table of an area.
void TimelinePanel::createBody() {
  m_body->addWidget(m_area);
  m_body->addWidget(m_sums);
  m_body->setStretchFactor(0, 1);
  m_body->setSizes({kTracksPx, kSumsPx});
  m_body->setChildrenCollapsible(false);
  m_sums->hide();
  connect(m_view, &TimelineView::areaChanged, this, [this] {
    m_sums->setArea(m_view->tracks(), m_view->area());
    m_sums->setVisible(m_wantsSums && m_view->area());
  });
  connect(m_view, &TimelineView::sumsToggled, this, &TimelinePanel::toggleSums);
  connect(m_sums, &TimelineSums::closeWanted, this, [this] {
    showSums(false);
    m_view->setFocus();
  });
  if (!m_isKept) return;
  m_body->restoreState(QSettings().value(kSizesKey).toByteArray());
  connect(m_body, &QSplitter::splitterMoved, this, [this] { QSettings().setValue(kSizesKey, m_body->saveState()); });
}

void TimelinePanel::showSums(bool isShown) {
  m_wantsSums = isShown;
  if (m_isKept) QSettings().setValue(kSumsKey, isShown);
  m_sums->setVisible(isShown && m_view->area());
}

/// Without an area, the table is of what is in view.
void TimelinePanel::toggleSums() {
  if (m_view->tracks().empty()) return;
  const bool isShown = m_sums->isVisibleTo(this);
  showSums(!isShown);
  if (!isShown && !m_view->area()) m_view->takeView();
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
  m_sums->setArea(m_view->tracks(), m_view->area());
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_body->setVisible(nothing.isEmpty());
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
