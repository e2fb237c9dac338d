// The fusions dock: groups of cards, one for each attempt.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/fusions_panel.h"

#include "core/plan/fusion_edits.h"
#include "ui/fusions/unplanned.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/elided_button.h"
#include "ui/widgets/pane_ring.h"
#include "ui/widgets/seen_refresh.h"

#include <QPushButton>
#include <QScrollBar>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace fuseline::ui {

namespace {

// More cards than this are no answer any more.
constexpr std::size_t kMaxCards = 40;

/// The same attempt in the next analysis: "ForwardLinearEpilogue:fc.linear,act".
QString keyOf(const Graph& graph, const Attempt& attempt) {
  QStringList ids;
  for (const NodeId node : attempt.nodes) ids.append(toQt(graph.node(node).id));
  return QStringLiteral("%1:%2").arg(toQt(attempt.rule->name), ids.join(u','));
}

}  // namespace

FusionsPanel::FusionsPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme), m_title(new QLabel(this)), m_area(new QScrollArea(this)) {
  m_title->setContentsMargins(10, 8, 10, 4);
  m_title->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setAccessibleName(tr("Fusions tried for the selected op"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_title);
  layout->addWidget(m_area, 1);
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { refresh(); },
      [&session] { return session.plan().isAnalysing(); });
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, seen, &SeenRefresh::request);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [this] {
    m_groups.clear();
    m_open.clear();
  });
  connect(&session.selection(), &Selection::changed, this, [this, seen] {
    m_showsDistant = false;
    m_groups.clear();
    seen->request();
    m_area->verticalScrollBar()->setValue(0);
  });
  connect(&theme, &Theme::changed, this, &FusionsPanel::refresh);
  refresh();
}

QString FusionsPanel::titleText() const {
  if (m_session.selection().ids().isEmpty())
    return tr("All fusions of this pipeline. Select an op to see only its fusions.");
  QStringList ids(m_session.selection().ids().begin(), m_session.selection().ids().end());
  ids.sort();
  return tr("Fusions that involve <b>%1</b>").arg(ids.join(QStringLiteral(", ")).toHtmlEscaped());
}

void FusionsPanel::refresh() {
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
  m_area->setWidget(m_list);  // the cards of the analysis before this one are gone
  m_analysis = m_session.plan().analysis();
  joinTabOrder(*m_area, *m_list);
  m_area->verticalScrollBar()->setValue(scrolled);
}

void FusionsPanel::addAttempts() {
  AttemptList list = attemptsFor(*m_session.plan().analysis(), m_session.selection().ids());
  std::ranges::stable_partition(
      list.shown, [&](const Attempt* attempt) { return toQt(attempt->rule->name) == m_session.selection().rule(); });
  addSlowerNote(list);
  addCards(list.shown);
  if (m_showsDistant) addCards(list.distant);
  addDistantNote(list);
}

void FusionsPanel::addSentence(const QString& sentence) {
  auto* label = new QLabel(sentence, m_list);
  label->setWordWrap(true);
  connect(label, &QLabel::linkActivated, &m_session, &Session::problemsWanted);
  m_cards->addWidget(label);
}

/// An attempt stays in its group while the selection does, so that it can be switched back in place.
FusionGroup FusionsPanel::shownGroup(const Attempt& attempt) {
  const QString key = keyOf(m_session.plan().analysis()->graph(), attempt);
  if (!m_groups.contains(key)) m_groups.insert(key, groupOf(attempt));
  return m_groups.value(key);
}

void FusionsPanel::addCards(const std::vector<const Attempt*>& attempts) {
  const std::array<std::pair<FusionGroup, QString>, 3> groups = {
      {{FusionGroup::Missed, tr("Missed")}, {FusionGroup::Fused, tr("Fused")}, {FusionGroup::Off, tr("Off")}}};
  std::map<FusionGroup, std::vector<InstanceAttempts>> members;
  for (InstanceAttempts& same : foldedAttempts(m_session.plan().analysis()->graph(), attempts))
    members[shownGroup(*same.front())].push_back(std::move(same));
  for (const auto& [group, name] : groups)
    if (!members[group].empty()) addGroup(name, members[group]);
}

/// The heading counts places; the instances of a block share a card.
void FusionsPanel::addGroup(const QString& name, const std::vector<InstanceAttempts>& attempts) {
  std::size_t numPlaces = 0;
  for (const InstanceAttempts& same : attempts) numPlaces += same.size();
  auto* heading = new QLabel(QStringLiteral("%1  %2").arg(name).arg(numPlaces), m_list);
  heading->setFont(scaledFont(1.0, QFont::DemiBold));
  heading->setForegroundRole(QPalette::PlaceholderText);
  m_cards->addWidget(heading);
  for (std::size_t i = 0; i < attempts.size() && i < kMaxCards; ++i) m_cards->addWidget(makeCard(attempts[i]));
}

/// Measurements do not change the plan by themselves; this button stores the choice in the pipeline.
void FusionsPanel::addSlowerNote(const AttemptList& list) {
  std::vector<const Attempt*> slower;
  for (const Attempt* attempt : list.shown)
    if (attempt->outcome == Outcome::Fused && attempt->measured && attempt->measured->isSlower())
      slower.push_back(attempt);
  if (slower.empty()) return;
  const auto numSlower = static_cast<qsizetype>(slower.size());
  const QString fusions = counted(numSlower, tr("fusion"), tr("fusions"));
  auto* button = new ElidedButton(tr("Switch off %1 measured as slower").arg(fusions), m_list);
  button->setToolTip(
      tr("Switches the listed fusions off for these ops; elsewhere their rules stay on. Later runs use the new plan. "
         "Can be undone."));
  const Edit edit = switchOffHere(m_session.pipeline().document(), m_session.plan().analysis()->graph(), slower);
  connect(button, &QPushButton::clicked, this, [this, edit] { m_session.pipeline().apply(edit); });
  m_cards->addWidget(button, 0, Qt::AlignLeft);
}

void FusionsPanel::addDistantNote(const AttemptList& list) {
  if (list.shown.empty() && list.distant.empty()) addSentence(tr("No rule matches here."));
  if (list.distant.empty() || m_showsDistant) return;
  const auto numDistant = static_cast<qsizetype>(list.distant.size());
  auto* more = new ElidedButton(
      tr("Show %1").arg(counted(numDistant, tr("partial or alternative match"), tr("partial or alternative matches"))),
      m_list);
  more->setFlat(true);
  connect(more, &QPushButton::clicked, this, [this] {
    m_showsDistant = true;
    QMetaObject::invokeMethod(this, &FusionsPanel::refresh, Qt::QueuedConnection);  // which takes the button away
  });
  m_cards->addWidget(more);
}

/// Opened before, or chosen by its hull on the canvas.
QWidget* FusionsPanel::makeCard(const InstanceAttempts& attempts) {
  const QString key = keyOf(m_session.plan().analysis()->graph(), *attempts.front());
  auto* card = new FusionCard(m_session, m_theme, attempts, m_list);
  card->setOpen(m_open.contains(key) || toQt(attempts.front()->rule->name) == m_session.selection().rule());
  connect(card, &FusionCard::openChanged, this,
          [this, key](bool isOpen) { isOpen ? void(m_open.insert(key)) : void(m_open.remove(key)); });
  return card;
}

}  // namespace fuseline::ui
