// The timeline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_panel.h"

#include "ui/fusions/unplanned.h"
#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_tracks_menu.h"
#include "ui/widgets/expression_edit.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QSettings>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

// Share of the height for tracks while the table is shown.
constexpr int kTracksPart = 3;
constexpr int kParts = 5;
constexpr int kCardOffsetPx = 6;
constexpr auto kSumsKey = "timeline/showsSums";
constexpr auto kTimelineSizesKey = "timeline/sizes";

QString methodText(const RunRecord& record) {
  const StepTiming timing = record.settings.timing;
  if (timing == StepTiming::Cupti) return TimelinePanel::tr("kernels traced by CUPTI");
  return timing == StepTiming::Events ? TimelinePanel::tr("steps timed by the device, each launched separately")
                                      : TimelinePanel::tr("steps timed by the host, with a synchronization after each");
}

QString captionOf(const LastRun& run) {
  return TimelinePanel::tr("For each plan, the round with the median total time") + QStringLiteral(" · ") +
         methodText(run.record).toHtmlEscaped();
}

}  // namespace

TimelinePanel::TimelinePanel(Session& session, const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_head(new QWidget(this)),
      m_caption(new QLabel(m_head)),
      m_tracks(new QToolButton(m_head)),
      m_hidden(new HiddenTracksBar(theme, this)),
      m_empty(new QLabel(this)),
      m_area(new QScrollArea(this)),
      m_view(new TimelineView(session.selection(), theme)),
      m_find(new TimelineFind(*m_view, this)),
      m_sums(new TimelineSums(session, theme, isKept)),
      m_body(new QSplitter(Qt::Vertical, this)),
      m_isKept(isKept),
      m_wantsSums(!isKept || QSettings().value(kSumsKey, true).toBool()) {
  createHead();
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setFocusPolicy(Qt::NoFocus);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setWidget(m_view);
  createBody();
  connectTracks();
  connectNotes();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_head);
  layout->addWidget(m_find);
  layout->addWidget(m_hidden);
  layout->addWidget(m_body, 1);
  layout->addWidget(m_empty, 1);
  const auto followRuns = [this] {
    refresh();
    closeCards();
  };
  connect(&session.runner(), &Runner::finished, this, followRuns);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, followRuns);
  connect(&session.runner(), &Runner::runningChanged, this, [this] {
    if (!m_session.results().lastRun()) refresh();
  });
  connect(&m_view->keys(), &TimelineKeys::findWanted, m_find, &TimelineFind::open);
  connect(&m_view->keys(), &TimelineKeys::pinWanted, this, &TimelinePanel::pin);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &TimelinePanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &TimelinePanel::refreshCaption);
  connect(&session.setup(), &RunSetup::passChanged, this, &TimelinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &TimelinePanel::refreshCaption);
  refresh();
}

void TimelinePanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  auto* bar = new RunFilterBar(m_session, filter, this);
  static_cast<QBoxLayout*>(m_head->layout())->addWidget(bar->button(), 0, Qt::AlignTop);
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &TimelinePanel::refresh);
}

void TimelinePanel::createHead() {
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Wheel, W, S: zoom · drag, A, D: pan · Home: fit all · F: fit selection\nDouble-click, Return: zoom to box · "
         "Backspace: back\nShift+drag, R: select a time range · Q: show or hide its table · N: add a note\nCtrl+F: "
         "find · F2: pin "
         "details · ?: all keys"));
  m_tracks->setText(tr("Tracks"));
  m_tracks->setToolTip(tr("Fold, pin, move or hide tracks"));
  m_tracks->setAccessibleName(tr("Arrange the tracks of the timeline"));
  m_tracks->setPopupMode(QToolButton::InstantPopup);
  m_tracks->setMenu(new QMenu(m_tracks));
  connect(m_tracks->menu(), &QMenu::aboutToShow, this,
          [this] { fillTracksMenu(*m_tracks->menu(), *m_view, std::nullopt); });
  auto* row = new QHBoxLayout(m_head);
  row->setContentsMargins(10, 6, 10, 6);
  row->addWidget(m_caption, 1);
  row->addWidget(m_tracks, 0, Qt::AlignTop);
}

/// How they are arranged is kept, and what is hidden is said.
void TimelinePanel::connectTracks() {
  if (m_isKept) m_view->arrange([](ArrangedTracks& tracks) { tracks.setArrangement(loadTimelineArrangement()); });
  connect(m_view, &TimelineView::arrangementChanged, this, [this] {
    if (m_isKept) saveTimelineArrangement(m_view->tracks().arrangement());
    m_hidden->follow(m_view->tracks());
  });
  connect(m_hidden, &HiddenTracksBar::showAllWanted, this, [this] {
    m_view->arrange(&ArrangedTracks::showAll);
    m_view->setFocus();
  });
  connect(m_view, &TimelineView::revealed, this, [this](const QRect& area) {
    if (!area.isNull()) m_area->ensureVisible(area.center().x(), area.center().y(), 0, area.height());
  });
}

QList<TipCard*> TimelinePanel::cards() const { return findChildren<TipCard*>(QString(), Qt::FindDirectChildrenOnly); }

void TimelinePanel::pin(const QString& html, const QString& title, QPoint place) {
  auto* card = new TipCard(html, title, m_theme, *this);
  card->moveTo(m_view->mapTo(this, place) + QPoint(kCardOffsetPx, kCardOffsetPx));
  card->show();
}

/// They are of another run.
void TimelinePanel::closeCards() {
  for (TipCard* card : cards()) card->deleteLater();
}

/// In the head of the table is a field for a note on the area.
void TimelinePanel::connectNotes() {
  connect(&m_view->keys(), &TimelineKeys::noteWanted, this, [this] {
    showSums(true);
    m_sums->noteField()->setFocus(Qt::ShortcutFocusReason);
  });
  connect(m_sums, &TimelineSums::noteWanted, this, [this](const QString& text) {
    if (m_view->area()) m_session.results().setStretchNote(noteOn(m_view->tracks().all(), *m_view->area(), text));
  });
  connect(m_sums, &TimelineSums::noteFinished, m_view, qOverload<>(&QWidget::setFocus));
  connect(&m_session.results(), &LastResults::leaving, this, [this] {
    if (m_sums->noteField()->hasFocus()) commitTypedField();
  });
  connect(&m_session.results(), &LastResults::stretchNotesChanged, this, &TimelinePanel::refreshNotes);
}

void TimelinePanel::refreshNotes() {
  const auto& run = m_session.results().lastRun();
  m_view->setNotes(run ? run->record.stretchNotes : std::vector<StretchNote>());
  refreshNote();
}

void TimelinePanel::refreshNote() {
  if (!m_view->area() || !m_session.results().lastRun()) return m_sums->setNote(QString());
  const StretchNote wanted = noteOn(m_view->tracks().all(), *m_view->area(), QString());
  const auto& notes = m_session.results().lastRun()->record.stretchNotes;
  const auto found = std::ranges::find_if(notes, [&](const StretchNote& note) { return note.isOfSameStretch(wanted); });
  m_sums->setNote(found == notes.end() ? QString() : toQt(found->text));
}

/// The tracks, and below them the table of an area.
void TimelinePanel::createBody() {
  m_body->addWidget(m_area);
  m_body->addWidget(m_sums);
  m_body->setStretchFactor(0, 1);
  m_body->setChildrenCollapsible(false);
  m_sums->hide();
  connect(m_view, &TimelineView::areaChanged, this, [this] {
    m_sums->setArea(m_view->tracks().all(), m_view->area());
    refreshNote();
    refreshSums();
  });
  connect(&m_view->keys(), &TimelineKeys::sumsToggled, this, &TimelinePanel::toggleSums);
  connect(m_sums, &TimelineSums::closeWanted, this, [this] {
    showSums(false);
    m_view->setFocus();
  });
  if (!m_isKept) return;
  m_hasSizes = m_body->restoreState(QSettings().value(kTimelineSizesKey).toByteArray());
  connect(m_body, &QSplitter::splitterMoved, this,
          [this] { QSettings().setValue(kTimelineSizesKey, m_body->saveState()); });
}

void TimelinePanel::showSums(bool isShown) {
  m_wantsSums = isShown;
  if (m_isKept) QSettings().setValue(kSumsKey, isShown);
  refreshSums();
}

/// The first time in its share of the height; then as the user has left it.
void TimelinePanel::refreshSums() {
  const bool isShown = m_wantsSums && m_view->area();
  if (isShown && !std::exchange(m_hasSizes, true))
    m_body->setSizes({m_body->height() * kTracksPart / kParts, m_body->height() * (kParts - kTracksPart) / kParts});
  m_sums->setVisible(isShown);
}

/// Without an area, the table is of what is in view.
void TimelinePanel::toggleSums() {
  if (m_view->tracks().isEmpty()) return;
  const bool isShown = m_sums->isVisibleTo(this);
  showSums(!isShown);
  if (!isShown && !m_view->area()) m_view->takeView();
}

QString TimelinePanel::emptyText() const {
  const auto& run = m_session.results().lastRun();
  if (!run)
    return whileUnmeasured(m_session, tr("No measurements yet. Press Run (Ctrl+Enter) to see when each step runs."));
  const std::string reason = whyNoTimeline(run->record);
  if (reason.empty()) return {};
  return tr("This run has no timeline: %1. Press Run (Ctrl+Enter) to see when each step runs.").arg(toQt(reason));
}

/// Time keeps its place: what the filter does not keep leaves a gap.
std::vector<TimelineTrack> TimelinePanel::shownTracks() const {
  const auto& run = m_session.results().lastRun();
  if (!run) return {};
  const Graph* graph = graphOfRun(m_session);
  std::vector<TimelineTrack> tracks = timelineTracks(run->record, graph);
  if (!m_filter || !m_filter->isActive()) return tracks;
  for (TimelineTrack& track : tracks) {
    const VariantRecord* variant = run->record.variant(track.name.toStdString());
    std::erase_if(track.items, [&](const TimelineItem& item) {
      const bool isStep = variant && item.step >= 0 && item.level != TimelineLevel::Pass;
      return isStep && !m_filter->keeps(variant->steps[static_cast<std::size_t>(item.step)], run->document, graph);
    });
  }
  return tracks;
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void TimelinePanel::refresh() {
  m_view->setTracks(shownTracks());
  m_sums->setArea(m_view->tracks().all(), m_view->area());
  refreshNotes();
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_body->setVisible(nothing.isEmpty());
  m_head->setVisible(nothing.isEmpty());
  m_hidden->follow(m_view->tracks());
  refreshCaption();
}

void TimelinePanel::refreshCaption() {
  const auto& run = m_session.results().lastRun();
  if (!run) return;
  QString text = captionOf(*run);
  if (const QString stale = staleText(*run); !stale.isEmpty())
    text += QStringLiteral(" · <b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale);
  m_caption->setText(text);
}

}  // namespace fuseline::ui
