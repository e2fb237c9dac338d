// The "suggestions" dock: what keeps the results first, then what does not.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/suggestions_panel.h"

#include "core/support/text.h"
#include "ui/fusions/gain_text.h"
#include "ui/fusions/unplanned.h"
#include "ui/theme/format.h"
#include "ui/widgets/card.h"
#include "ui/widgets/elided_button.h"
#include "ui/widgets/pane_ring.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollBar>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace fuseline::ui {

namespace {

/// More cards, or lines of plans, than this are no answer any more.
constexpr std::size_t kMostCards = 40;
constexpr qsizetype kMostLines = 5;

QString headOf(SuggestionKind kind) {
  return kind == SuggestionKind::SameResults
             ? SuggestionsPanel::tr("Same results")
             : SuggestionsPanel::tr("Changes behavior: results, inputs, or effects on the caller's tensors");
}

/// A figure that an edit changes, as a chip.
struct Chip {
  bool isLess = false;
  QString text;
};

Chip chip(bool isLess, const QString& amount, const QString& what) {
  return {isLess, (isLess ? QStringLiteral("−") : QStringLiteral("+")) + amount + u' ' + what};
}

std::vector<Chip> chipsOf(const Suggestion& suggestion) {
  const PlanNeeds& before = suggestion.before;
  const PlanNeeds& after = suggestion.after;
  const Saving saving = suggestion.saving();
  std::vector<Chip> chips;
  const auto addBytes = [&](std::int64_t saved, const QString& what) {
    if (saved != 0) chips.push_back(chip(saved > 0, toQt(formatBytes(std::abs(saved))), what));
  };
  const auto addFlops = [&](std::int64_t more, const QString& what) {
    if (more != 0) chips.push_back(chip(more < 0, toQt(formatFlops(static_cast<double>(std::abs(more)))), what));
  };
  addBytes(saving.bytes, SuggestionsPanel::tr("traffic"));
  if (saving.launches != 0)
    chips.push_back(
        chip(saving.launches > 0, QString::number(std::abs(saving.launches)),
             std::abs(saving.launches) == 1 ? SuggestionsPanel::tr("launch") : SuggestionsPanel::tr("launches")));
  addBytes(before.savedForBackwardBytes - after.savedForBackwardBytes, SuggestionsPanel::tr("kept for backward"));
  addBytes(before.peakBytes - after.peakBytes, SuggestionsPanel::tr("peak memory"));
  addFlops(after.quantizedFlops - before.quantizedFlops, SuggestionsPanel::tr("in 8 bits or fewer"));
  addFlops(after.flops - before.flops, SuggestionsPanel::tr("in total"));
  return chips;
}

/// The predicted time, then what is saved, then what it costs.
QString effectsText(const Suggestion& suggestion, const DeviceModel& device) {
  QStringList texts;
  const std::optional<double> ns = predictedNs(suggestion.saving(), device);
  if (ns && *ns > 0.0) texts.append(SuggestionsPanel::tr("−%1 predicted").arg(formatDurationNs(*ns)));
  if (suggestion.fp8SavedUs > 0.0)
    texts.append(SuggestionsPanel::tr("−%1 by 8-bit GEMMs (estimated for an H200)")
                     .arg(formatDurationNs(1e3 * suggestion.fp8SavedUs)));
  std::vector<Chip> chips = chipsOf(suggestion);
  std::ranges::stable_partition(chips, &Chip::isLess);
  for (const Chip& each : chips) texts.append(each.text);
  return texts.join(QStringLiteral(" · "));
}

/// "forward + ForwardLinearEpilogue (fc1, act)", a line each.
QString plansText(const std::vector<PlanListDifference>& plans) {
  QStringList lines;
  for (const PlanListDifference& list : plans)
    for (const PlanLine& line : list.lines)
      if (line.mark != ' ')
        lines.append(QStringLiteral("%1 %2 %3")
                         .arg(toQt(list.list), line.mark == '-' ? u'\u2212' : QChar(line.mark), toQt(line.text)));
  const qsizetype left = lines.size() - kMostLines;
  if (left < 2) return lines.join(u'\n');
  return QStringList(lines.first(kMostLines)).join(u'\n') +
         SuggestionsPanel::tr("\nand %1 more plan differences").arg(left);
}

}  // namespace

SuggestionsPanel::SuggestionsPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_search(session),
      m_title(new QLabel(this)),
      m_searchButton(new QPushButton(this)),
      m_area(new QScrollArea(this)) {
  m_title->setContentsMargins(10, 8, 10, 4);
  m_title->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setAccessibleName(tr("Suggestions"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* head = new QHBoxLayout;
  head->setContentsMargins(0, 0, 10, 0);
  head->addWidget(m_title, 1);
  head->addWidget(m_searchButton, 0, Qt::AlignTop);
  layout->addLayout(head);
  layout->addWidget(m_area, 1);
  connect(m_searchButton, &QPushButton::clicked, this,
          [this] { m_search.isSearching() ? m_search.cancel() : m_search.again(); });
  connect(&m_search, &SuggestionSearch::changed, this, &SuggestionsPanel::refresh);
  connect(&theme, &Theme::changed, this, &SuggestionsPanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &SuggestionsPanel::refreshEnabled);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &SuggestionsPanel::refreshEnabled);
  connect(&m_search, &SuggestionSearch::progressed, this, [this] { m_title->setText(titleText()); });
  connect(m_title, &QLabel::linkActivated, &session, &Session::problemsWanted);
  refresh();
}

QString SuggestionsPanel::titleText() const {
  if (const QString unplanned = unplannedText(m_session); !unplanned.isEmpty()) return unplanned;
  if (m_search.isSearching() || m_search.isCanceled()) return searchText();
  if (m_search.found().empty()) return tr("No suggestions: no edit that was tried saves time, traffic or memory.");
  const auto number = static_cast<qsizetype>(m_search.found().size());
  return tr("%1, each tried on a copy of the pipeline. Savings are predicted; run to measure them.")
      .arg(counted(number, tr("suggestion"), tr("suggestions")));
}

/// How far the search is, or was.
QString SuggestionsPanel::searchText() const {
  const auto tried = static_cast<qsizetype>(m_search.numTried());
  const auto most = static_cast<qsizetype>(m_search.mostTried());
  if (m_search.isCanceled()) return tr("Canceled after %1.").arg(counted(tried, tr("edit"), tr("edits")));
  return most == 0 ? tr("Trying edits...")
                   : tr("Trying edit %1 of at most %2...").arg(std::min(tried + 1, most)).arg(most);
}

void SuggestionsPanel::refresh() {
  m_title->setText(titleText());
  m_searchButton->setText(m_search.isSearching() ? tr("Cancel") : tr("Search again"));
  m_searchButton->setVisible(m_search.isSearching() || m_search.isCanceled());
  m_list = new QWidget;
  m_cards = new QVBoxLayout(m_list);
  m_cards->setContentsMargins(8, 4, 8, 8);
  m_cards->setSpacing(8);
  if (unplannedText(m_session).isEmpty()) addSuggestions();
  m_cards->addStretch(1);
  refreshEnabled();
  const int scrolled = m_area->verticalScrollBar()->value();
  m_area->setWidget(m_list);
  joinTabOrder(*m_area, *m_list);
  m_area->verticalScrollBar()->setValue(scrolled);
}

/// They may not fit what the pipeline is by now.
void SuggestionsPanel::refreshEnabled() {
  if (m_list) m_list->setEnabled(!m_search.isSearching() && !m_session.plan().isAnalysing());
}

void SuggestionsPanel::addSuggestions() {
  const std::vector<Suggestion>& found = m_search.found();
  for (std::size_t i = 0; i < std::min(found.size(), kMostCards); ++i) {
    const SuggestionKind kind = found[i].proposal.kind;
    if (i == 0 || found[i - 1].proposal.kind != kind) {
      auto* head = new QLabel(QStringLiteral("<b>%1</b>").arg(headOf(kind)), m_list);
      head->setWordWrap(true);
      m_cards->addWidget(head);
    }
    m_cards->addWidget(makeCard(found[i]));
  }
}

QWidget* SuggestionsPanel::makeCard(const Suggestion& suggestion) {
  const Proposal& proposal = suggestion.proposal;
  QFrame* card = ui::makeCard(m_theme, m_list);
  QVBoxLayout& layout = layoutOf(*card);
  layout.addWidget(makeSentence(QStringLiteral("<b>%1</b>").arg(toQt(proposal.repair.label).toHtmlEscaped()), card));
  const DeviceModel& device = m_session.plan().analysis()->report.device;
  QLabel* effects = makeSentence(effectsText(suggestion, device), card);
  effects->setToolTip(predictionTip(device));
  layout.addWidget(effects);
  if (!proposal.caution.empty()) layout.addWidget(makeSentence(toQt(proposal.caution), card));
  if (const QString plans = plansText(suggestion.plans); !plans.isEmpty()) {
    QLabel* lines = makeSentence(plans, card);
    lines->setFont(scaledFont(0.92));
    lines->setTextFormat(Qt::PlainText);
    layout.addWidget(lines);
  }
  layout.addLayout(makeButtons(suggestion, card));
  return card;
}

QLayout* SuggestionsPanel::makeButtons(const Suggestion& suggestion, QWidget* card) {
  auto* buttons = new QHBoxLayout;
  const Proposal& proposal = suggestion.proposal;
  const QString label = toQt(proposal.repair.label);
  auto* apply = new QPushButton(tr("Apply"), card);
  apply->setAccessibleName(tr("Apply: %1").arg(label));
  connect(apply, &QPushButton::clicked, this,
          [this, edit = proposal.repair.edit] { m_session.pipeline().apply(edit); });
  buttons->addWidget(apply);
  if (const QString node = toQt(proposal.node); !node.isEmpty()) {
    auto* show = new ElidedButton(tr("Select %1").arg(node), card);
    connect(show, &QPushButton::clicked, this, [this, node] { m_session.selection().select({node}); });
    buttons->addWidget(show);
  }
  buttons->addStretch(1);
  return buttons;
}

}  // namespace fuseline::ui
