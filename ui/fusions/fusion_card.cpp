// A card that opens.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/fusion_card.h"

#include "core/fusion/rule_text.h"
#include "core/plan/fusion_edits.h"
#include "core/runtime/planned_collectives.h"
#include "ui/fusions/gain_text.h"
#include "ui/theme/format.h"
#include "ui/widgets/card.h"
#include "ui/widgets/elided_button.h"
#include "ui/widgets/elided_label.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QMouseEvent>
#include <QVBoxLayout>

#include <optional>
#include <utility>

namespace fuseline::ui {

namespace {

QString passText(const FusionRule& rule) {
  return QStringLiteral("%1 · %2").arg(toQt(passName(rule.pass)), toQt(originName(rule.origin)));
}

QString iconFor(FusionGroup group) {
  return group == FusionGroup::Fused ? QStringLiteral("fused")
         : group == FusionGroup::Off ? QStringLiteral("off")
                                     : QStringLiteral("missed");
}

/// Switches the fusion at its places; nothing where only another pipeline would change it.
std::optional<Edit> switchEdit(const Session& session, const InstanceAttempts& attempts) {
  const PipelineDocument& document = session.pipeline().document();
  const Graph& graph = session.plan().analysis()->graph();
  const Attempt& attempt = *attempts.front();
  if (attempt.outcome == Outcome::Fused) return switchOffHere(document, graph, attempts);
  if (isOffHere(document, graph, attempt)) return switchOnHere(document, graph, attempts);
  if (!isRuleEnabled(document, *attempt.rule)) return setRuleEnabled(document, *attempt.rule, true);
  return useHere(document, *session.plan().analysis(), attempts);
}

}  // namespace

/// Off: nothing is in the way of the fusion but a choice, or a measurement.
FusionGroup groupOf(const Attempt& attempt) {
  switch (attempt.outcome) {
    case Outcome::Fused: return FusionGroup::Fused;
    case Outcome::SwitchedOff:
    case Outcome::OnRequest:
    case Outcome::MeasuredSlower: return FusionGroup::Off;
    default: return FusionGroup::Missed;
  }
}

FusionCard::FusionCard(Session& session, const Theme& theme, InstanceAttempts attempts, QWidget* parent)
    : QFrame(parent),
      m_session(session),
      m_theme(theme),
      m_attempts(std::move(attempts)),
      m_attempt(*m_attempts.front()),
      m_arrow(new QToolButton(this)) {
  makeCardOf(*this, theme);
  setAccessibleName(toQt(m_attempt.rule->name) + placesText());
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 3, 8, 3);
  layout->setSpacing(4);
  layout->addLayout(makeLine());
  layout->addWidget(makeDetails());
  connect(m_arrow, &QToolButton::clicked, this, [this] {
    setOpen(m_details->isHidden());
    Q_EMIT openChanged(!m_details->isHidden());
  });
  setOpen(false);
}

void FusionCard::setOpen(bool isOpen) {
  m_details->setVisible(isOpen);
  m_arrow->setArrowType(isOpen ? Qt::DownArrow : Qt::RightArrow);
  m_arrow->setAccessibleName(
      (isOpen ? tr("Hide details of %1") : tr("Show details of %1")).arg(toQt(m_attempt.rule->name)));
}

QString FusionCard::ops() const { return opsText(m_session.plan().analysis()->graph(), m_attempts); }

/// " in 32 instances"; empty for a single place.
QString FusionCard::placesText() const {
  return m_attempts.size() > 1 ? tr(" in %1 instances").arg(m_attempts.size()) : QString();
}

/// Arrow, icon, name, gain, fix, switch.
QLayout* FusionCard::makeLine() {
  const ThemeColors& colors = m_theme.colors();
  const FusionGroup group = groupOf(m_attempt);
  const QColor color = group == FusionGroup::Fused ? colors.good
                       : group == FusionGroup::Off ? colors.dimText
                                                   : colors.warning;
  auto* line = new QHBoxLayout;
  line->setSpacing(6);
  m_arrow->setAutoRaise(true);
  m_arrow->setFocusPolicy(Qt::StrongFocus);
  line->addWidget(m_arrow);
  auto* icon = new QLabel(this);
  icon->setPixmap(m_theme.icon(iconFor(group), color).pixmap(16, 16));
  line->addWidget(icon);
  line->addLayout(makeNames(), 1);
  if (m_attempts.size() > 1)
    line->addWidget(makeGain(QStringLiteral("× %1").arg(m_attempts.size()), tr("The same%1").arg(placesText())));
  const DeviceModel& device = m_session.plan().analysis()->report.device;
  line->addWidget(
      makeGain(shortGainText(m_attempt, device), m_attempt.measured ? measuredText(m_attempt) : predictionTip(device)));
  addFix(*line);
  addSwitch(*line);
  return line;
}

/// The ops, and below them the rule.
QLayout* FusionCard::makeNames() {
  const QString rule = toQt(m_attempt.rule->name);
  const QString tip =
      QStringLiteral("<b>%1</b><br>%2<br>%3<br>%4")
          .arg(rule, (ops() + placesText()).toHtmlEscaped(), toQt(m_attempt.rule->summary).toHtmlEscaped(),
               toQt(patternText(*m_attempt.rule)).toHtmlEscaped());
  auto* names = new QVBoxLayout;
  names->setSpacing(0);
  for (const auto& [text, font] :
       {std::pair(ops(), scaledFont(1.0, QFont::DemiBold)), std::pair(rule, scaledFont(0.92))}) {
    auto* label = new ElidedLabel(this);
    label->setText(text);
    label->setFont(font);
    label->setToolTip(tip);
    names->addWidget(label);
  }
  return names;
}

/// Anywhere on the line, as its arrow does.
void FusionCard::mouseReleaseEvent(QMouseEvent* event) {
  const bool isOnLine = m_details->isHidden() || event->position().y() < m_details->y();
  if (event->button() == Qt::LeftButton && isOnLine && rect().contains(event->position().toPoint())) m_arrow->click();
}

QLabel* FusionCard::makeGain(const QString& text, const QString& tip) {
  auto* gain = new QLabel(text, this);
  gain->setFont(scaledFont(0.92));
  gain->setToolTip(tip);
  return gain;
}

/// The first one; the details have all.
void FusionCard::addFix(QLayout& line) {
  if (m_attempt.repairs.empty()) return;
  const Repair& repair = m_attempt.repairs.front();
  auto* fix = new QToolButton(this);
  fix->setText(tr("Fix"));
  fix->setToolTip(toQt(repair.label));
  fix->setAccessibleName(toQt(repair.label));
  fix->setFocusPolicy(Qt::StrongFocus);
  connect(fix, &QToolButton::clicked, this,
          [session = &m_session, edit = repair.edit] { session->pipeline().apply(edit); });
  line.addWidget(fix);
}

void FusionCard::addSwitch(QLayout& line) {
  const std::optional<Edit> edit = switchEdit(m_session, m_attempts);
  if (!edit) return;
  auto* box = new QCheckBox(this);
  box->setChecked(m_attempt.outcome == Outcome::Fused);
  box->setToolTip((box->isChecked() ? tr("Switch off here") : tr("Switch on here")) + placesText());
  box->setAccessibleName(tr("%1 at %2").arg(toQt(m_attempt.rule->name), ops() + placesText()));
  connect(box, &QCheckBox::clicked, this, [session = &m_session, edit = *edit] { session->pipeline().apply(edit); });
  line.addWidget(box);
}

QWidget* FusionCard::makeDetails() {
  m_details = new QWidget(this);
  auto* layout = new QVBoxLayout(m_details);
  layout->setContentsMargins(26, 0, 0, 4);
  layout->setSpacing(4);
  auto* outcome =
      makeGain(QStringLiteral("%1 · %2").arg(toQt(outcomeName(m_attempt.outcome)), passText(*m_attempt.rule)), {});
  outcome->setWordWrap(true);
  outcome->setForegroundRole(QPalette::PlaceholderText);
  layout->addWidget(outcome);
  layout->addWidget(makeSentence(toQt(m_attempt.explanation), m_details));
  const DeviceModel& device = m_session.plan().analysis()->report.device;
  const QString overlap = toQt(userbuffersText(*m_session.plan().analysis(), m_attempt));
  for (const QString& gain : {predictedText(m_attempt, device), measuredText(m_attempt), overlap}) {
    if (gain.isEmpty()) continue;
    QLabel* label = makeGain(gain, {});
    label->setWordWrap(true);
    layout->addWidget(label);
  }
  addButtons(*layout);
  return m_details;
}

void FusionCard::addButtons(QLayout& details) {
  const auto add = [&](const QString& text, const Edit& edit) {
    auto* button = new ElidedButton(text, m_details);
    connect(button, &QPushButton::clicked, this, [session = &m_session, edit] { session->pipeline().apply(edit); });
    details.addWidget(button);
    details.setAlignment(button, Qt::AlignLeft);
  };
  const FusionRule& rule = *m_attempt.rule;
  for (const Repair& repair : m_attempt.repairs) add(toQt(repair.label), repair.edit);
  if (m_attempt.outcome == Outcome::Fused)
    add(tr("Switch this rule off"), setRuleEnabled(m_session.pipeline().document(), rule, false));
  if (!isRuleEnabled(m_session.pipeline().document(), rule))
    add(tr("Switch this rule on"), setRuleEnabled(m_session.pipeline().document(), rule, true));
}

}  // namespace fuseline::ui
