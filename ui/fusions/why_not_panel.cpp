// The "why not?" dock: one card an attempt.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/why_not_panel.h"

#include "core/fusion/rule_text.h"
#include "core/plan/fusion_edits.h"
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

namespace fuseline::ui {

namespace {

// More cards than this are no answer any more.
constexpr std::size_t kMaxCards = 40;

QString passText(const FusionRule& rule) {
  return QStringLiteral("%1 · %2").arg(toQt(passName(rule.pass)), toQt(originName(rule.origin)));
}

/// Nothing is in the way of the fusion but what somebody chose, or measured.
bool isChoice(Outcome outcome) {
  return outcome == Outcome::SwitchedOff || outcome == Outcome::OnRequest || outcome == Outcome::MeasuredSlower;
}

QString iconFor(Outcome outcome) {
  if (outcome == Outcome::Fused) return QStringLiteral("fused");
  return isChoice(outcome) ? QStringLiteral("off") : QStringLiteral("missed");
}

}  // namespace

WhyNotPanel::WhyNotPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme), m_title(new QLabel(this)), m_area(new QScrollArea(this)) {
  m_title->setContentsMargins(10, 8, 10, 4);
  m_title->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setAccessibleName(tr("Fusion attempts of the selected op"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_title);
  layout->addWidget(m_area, 1);
  connect(&session, &Session::analysisChanged, this, &WhyNotPanel::refresh);
  connect(&session, &Session::selectionChanged, this, [this] {
    m_showsDistant = false;
    refresh();
    m_area->verticalScrollBar()->setValue(0);
  });
  connect(&theme, &Theme::changed, this, &WhyNotPanel::refresh);
  refresh();
}

QString WhyNotPanel::titleText() const {
  if (m_session.selection().isEmpty()) return tr("All fusions of this pipeline. Select an op to see only its fusions.");
  QStringList ids(m_session.selection().begin(), m_session.selection().end());
  ids.sort();
  return tr("Fusions that involve <b>%1</b>").arg(ids.join(QStringLiteral(", ")).toHtmlEscaped());
}

void WhyNotPanel::refresh() {
  m_title->setText(titleText());
  m_list = new QWidget;
  m_cards = new QVBoxLayout(m_list);
  m_cards->setContentsMargins(8, 4, 8, 8);
  m_cards->setSpacing(8);
  const QString unplanned = unplannedText(m_session);
  m_title->setVisible(unplanned.isEmpty());
  unplanned.isEmpty() ? addAttempts() : addSentence(unplanned);
  m_cards->addStretch(1);
  const int scrolled = m_area->verticalScrollBar()->value();
  m_area->setWidget(m_list);
  joinTabOrder(*m_area, *m_list);
  m_area->verticalScrollBar()->setValue(scrolled);
}

void WhyNotPanel::addAttempts() {
  AttemptList list = attemptsFor(*m_session.analysis(), m_session.selection());
  std::ranges::stable_partition(
      list.shown, [&](const Attempt* attempt) { return toQt(attempt->rule->name) == m_session.selectedRule(); });
  addSlowerNote(list);
  addCards(list.shown);
  if (m_showsDistant) addCards(list.distant);
  addDistantNote(list);
}

void WhyNotPanel::addSentence(const QString& sentence) {
  auto* label = new QLabel(sentence, m_list);
  label->setWordWrap(true);
  connect(label, &QLabel::linkActivated, &m_session, &Session::problemsWanted);
  m_cards->addWidget(label);
}

void WhyNotPanel::addCards(const std::vector<const Attempt*>& attempts) {
  for (std::size_t i = 0; i < attempts.size() && i < kMaxCards; ++i) m_cards->addWidget(makeCard(*attempts[i]));
}

/// Measurements do not change the plan by themselves; this button stores the choice in the pipeline.
void WhyNotPanel::addSlowerNote(const AttemptList& list) {
  std::vector<const Attempt*> slower;
  for (const Attempt* attempt : list.shown)
    if (attempt->outcome == Outcome::Fused && attempt->measured && attempt->measured->isSlower())
      slower.push_back(attempt);
  if (slower.empty()) return;
  const auto numSlower = static_cast<qsizetype>(slower.size());
  const QString fusions = counted(numSlower, tr("fusion"), tr("fusions"));
  auto* button = new ElidedButton(tr("Switch off %1 measured as slower").arg(fusions), m_list);
  button->setToolTip(tr("Switches off each one at its place. Runs use the new plan. Can be undone."));
  const Edit edit = switchOffHere(m_session.document(), m_session.analysis()->graph(), slower);
  connect(button, &QPushButton::clicked, this, [this, edit] { m_session.apply(edit); });
  m_cards->addWidget(button, 0, Qt::AlignLeft);
}

void WhyNotPanel::addDistantNote(const AttemptList& list) {
  if (list.shown.empty() && list.distant.empty()) addSentence(tr("No rule matches here."));
  if (list.distant.empty() || m_showsDistant) return;
  const auto numDistant = static_cast<qsizetype>(list.distant.size());
  auto* more = new ElidedButton(tr("Show %1").arg(counted(numDistant, tr("attempt that matches only one op"),
                                                          tr("attempts that match only one op"))),
                                m_list);
  more->setFlat(true);
  connect(more, &QPushButton::clicked, this, [this] {
    m_showsDistant = true;
    QMetaObject::invokeMethod(this, &WhyNotPanel::refresh, Qt::QueuedConnection);  // which takes the button away
  });
  m_cards->addWidget(more);
}

QWidget* WhyNotPanel::makeCard(const Attempt& attempt) {
  QFrame* card = ui::makeCard(m_theme, m_list);
  QVBoxLayout& layout = layoutOf(*card);
  layout.addLayout(makeCardHead(attempt, card));
  layout.addWidget(makeSentence(toQt(attempt.explanation), card));
  const DeviceModel& device = m_session.analysis()->report.device;
  if (const QString gain = predictedText(attempt, device); !gain.isEmpty())
    layout.addWidget(makeGain(gain, predictionTip(device), card));
  if (const QString gain = measuredText(attempt); !gain.isEmpty()) layout.addWidget(makeGain(gain, {}, card));
  layout.addLayout(makeCardButtons(attempt, card));
  return card;
}

QLabel* WhyNotPanel::makeGain(const QString& text, const QString& tip, QWidget* card) const {
  auto* gain = new QLabel(text, card);
  gain->setWordWrap(true);
  gain->setFont(scaledFont(0.92));
  gain->setToolTip(tip);
  return gain;
}

QLayout* WhyNotPanel::makeCardHead(const Attempt& attempt, QWidget* card) {
  const ThemeColors& colors = m_theme.colors();
  const QColor unfused = isChoice(attempt.outcome) ? colors.dimText : colors.warning;
  const QColor color = attempt.outcome == Outcome::Fused ? colors.good : unfused;
  auto* icon = new QLabel(card);
  icon->setPixmap(m_theme.icon(iconFor(attempt.outcome), color).pixmap(18, 18));
  auto* name = new QLabel(
      QStringLiteral("<b>%1</b><br><span style='color:%2'><b>%3</b></span><span style='color:%4'> · %5</span>")
          .arg(toQt(attempt.rule->name).toHtmlEscaped(), color.name(), toQt(outcomeName(attempt.outcome)),
               colors.dimText.name(), passText(*attempt.rule)),
      card);
  name->setToolTip(
      QStringLiteral("%1<br>%2")
          .arg(toQt(attempt.rule->summary).toHtmlEscaped(), toQt(patternText(*attempt.rule)).toHtmlEscaped()));
  auto* head = new QHBoxLayout;
  head->setSpacing(8);
  head->addWidget(icon, 0, Qt::AlignTop);
  name->setMinimumWidth(1);  // rather cut off than wider than the panel
  head->addWidget(name, 1);
  return head;
}

QLayout* WhyNotPanel::makeCardButtons(const Attempt& attempt, QWidget* card) {
  auto* buttons = new QVBoxLayout;
  buttons->setSpacing(4);
  const auto addButton = [&](const QString& text, const Edit& edit) {
    auto* button = new ElidedButton(text, card);
    connect(button, &QPushButton::clicked, this, [this, edit] { m_session.apply(edit); });
    buttons->addWidget(button, 0, Qt::AlignLeft);
  };
  for (const Repair& repair : attempt.repairs) addButton(toQt(repair.label), repair.edit);
  const FusionRule& rule = *attempt.rule;
  const bool isOff = !isRuleEnabled(m_session.document(), rule);
  const PipelineDocument& document = m_session.document();
  const Graph& graph = m_session.analysis()->graph();
  const bool isFused = attempt.outcome == Outcome::Fused;
  if (const std::optional<Edit> use = useHere(document, *m_session.analysis(), attempt))
    addButton(tr("Use this one here"), *use);
  if (isOffHere(document, graph, attempt)) addButton(tr("Switch on here"), switchOnHere(document, graph, {&attempt}));
  if (isFused) addButton(tr("Switch off here"), switchOffHere(document, graph, {&attempt}));
  if (isFused) addButton(tr("Switch this rule off"), setRuleEnabled(document, rule, false));
  if (isOff) addButton(tr("Switch this rule on"), setRuleEnabled(document, rule, true));
  return buttons;
}

}  // namespace fuseline::ui
