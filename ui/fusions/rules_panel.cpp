// The rules dock: a table, and the current rule in full beside it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/rules_panel.h"

#include "core/fusion/rule_text.h"
#include "core/plan/fusion_edits.h"
#include "ui/fusions/gain_text.h"
#include "ui/fusions/unplanned.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/seen_refresh.h"
#include "ui/widgets/table_copying.h"

#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>

#include <utility>

namespace fuseline::ui {

namespace {

// More places than this are counted, not told.
constexpr std::size_t kMaxPlaces = 40;
constexpr int kTablePart = 5;
constexpr int kDetailsPart = 3;

const QString kHitLink = QStringLiteral("#hit");
const QString kMissLink = QStringLiteral("#miss");

/// Outlines the boxes, which the style draws without contrast on a dark ground.
class RuleDelegate : public RoomyDelegate {
 public:
  RuleDelegate(const Theme& theme, QObject* parent) : RoomyDelegate(parent), m_theme(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    if (!index.data(Qt::CheckStateRole).isValid()) return;
    QStyleOptionViewItem cell = option;
    initStyleOption(&cell, index);
    const QRect box =
        option.widget->style()->subElementRect(QStyle::SE_ItemViewItemCheckIndicator, &cell, option.widget);
    painter->setPen(m_theme.colors().dimText);
    painter->drawRect(box.adjusted(0, 0, -1, -1));
  }

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return QStyledItemDelegate::sizeHint(option, index) + QSize(8, 4);
  }

 private:
  const Theme& m_theme;
};

QString escaped(const std::string& text) { return toQt(text).toHtmlEscaped(); }

QString fact(const QString& name, const QString& text) {
  return QStringLiteral("<tr><td style='padding-right:10px'><b>%1</b></td><td>%2</td></tr>").arg(name, text);
}

QString conditionsText(const FusionRule& rule) {
  if (rule.conditions.empty()) return RulesPanel::tr("none");
  QStringList sentences;
  for (const Condition& condition : rule.conditions) sentences.append(escaped(condition.sentence));
  return sentences.join(QStringLiteral("<br>"));
}

QString factsText(const FusionRule& rule) {
  QString rows = fact(RulesPanel::tr("Pattern"), escaped(patternText(rule))) +
                 fact(RulesPanel::tr("Conditions"), conditionsText(rule));
  if (rule.hardware) rows += fact(RulesPanel::tr("Hardware"), escaped(toString(*rule.hardware)));
  if (!rule.price.empty()) rows += fact(RulesPanel::tr("Cost"), escaped(rule.price));
  return QStringLiteral("<table cellspacing='0' cellpadding='1'>%1</table>")
      .arg(rows + fact(RulesPanel::tr("Kernel"), escaped(rule.becomes)));
}

QString headText(const FusionRule& rule) {
  return QStringLiteral("<p><b>%1</b> · %2 · %3<br>%4</p>")
      .arg(escaped(rule.name), escaped(listName(rule.pass)), escaped(std::string(originName(rule.origin))),
           escaped(rule.summary));
}

QSet<QString> ownersOf(const Graph& graph, const Attempt& attempt) {
  QSet<QString> owners;
  for (const NodeId id : attempt.nodes) owners.insert(toQt(graph.node(id).owner));
  return owners;
}

QString idsText(const Graph& graph, const Attempt& attempt) {
  QStringList ids;
  for (const NodeId id : attempt.nodes) ids.append(escaped(graph.node(id).id));
  return ids.join(QStringLiteral(", "));
}

QString countText(const std::vector<const Attempt*>& attempts, const QString& one, const QString& several) {
  return QStringLiteral("<b>%1</b>").arg(counted(static_cast<qsizetype>(attempts.size()), one, several));
}

/// The attempt that a link stands for; nullptr: another kind of link, or one of an older text.
const Attempt* attemptAt(const std::vector<const Attempt*>& attempts, const QString& link, const QString& kind) {
  if (!link.startsWith(kind)) return nullptr;
  const auto index = static_cast<std::size_t>(link.mid(kind.size()).toUInt());
  return index < attempts.size() ? attempts[index] : nullptr;
}

}  // namespace

RulesPanel::RulesPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_model(new RulesModel(theme, this)),
      m_view(new QTreeView(this)),
      m_details(new QTextBrowser(this)),
      m_caption(new QLabel(this)) {
  createView();
  m_details->setOpenLinks(false);
  m_details->setFrameShape(QFrame::NoFrame);
  m_details->document()->setDocumentMargin(8);
  m_details->setAccessibleName(tr("Rule details"));
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setWordWrap(true);
  connect(m_caption, &QLabel::linkActivated, &m_session, &Session::problemsWanted);
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(m_view);
  splitter->addWidget(m_details);
  splitter->setStretchFactor(0, kTablePart);
  splitter->setStretchFactor(1, kDetailsPart);
  splitter->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_caption);
  layout->addWidget(splitter, 1);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [this] { m_isFresh = true; });
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { refresh(); },
      [&session] { return session.plan().isAnalysing(); });
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, seen, &SeenRefresh::request);
  connect(&session.selection(), &Selection::changed, this, &RulesPanel::followSelection);
  connect(&theme, &Theme::changed, this, &RulesPanel::refresh);
  connect(m_model, &RulesModel::switchWanted, this,
          [this](const FusionRule* rule, bool isEnabled) { switchRule(*rule, isEnabled); });
  connect(m_details, &QTextBrowser::anchorClicked, this, &RulesPanel::follow);
  m_view->setCurrentIndex(m_model->index(0, 0));
}

void RulesPanel::createView() {
  m_view->setModel(m_model);
  makeRoomy(*m_view, new RuleDelegate(m_theme, m_view));
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Fusion rules, in the order in which they are tried"));
  m_view->header()->setSectionsMovable(false);
  m_view->header()->setStretchLastSection(true);  // of words
  makeCopyable(*m_view);
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &RulesPanel::refreshDetails);
}

/// While the panel is closed, an edit costs nothing here.
void RulesPanel::refresh() {
  m_isOutdated = !isVisible();
  if (m_isOutdated) return;
  m_model->show(m_session.plan().analysis(), m_session.setup().pass(), m_session.pipeline().document());
  const bool isTe = m_session.plan().analysis()->report.book == RuleBook::Te;
  const QString unplanned = unplannedText(m_session);
  const QString saved = predictedText(m_model->saved(), m_model->analysis().report.device);
  m_caption->setText((isTe ? tr("Rule set: TransformerEngine. The first rule that matches is applied.")
                           : tr("Rule set: all rules. If fusions overlap, those with the largest gain are applied; "
                                "ties go to the earlier rule.")) +
                     (saved.isEmpty() ? QString() : u' ' + saved) +
                     (unplanned.isEmpty() ? QString() : u' ' + unplanned));
  if (m_isFresh && m_model->analysis().isRunnable()) showFirstHit();
  refreshDetails();
}

void RulesPanel::showFirstHit() {
  m_isFresh = false;
  for (int row = 0; row < m_model->rowCount(); ++row)
    if (!m_model->use(row).hits.empty()) return m_view->setCurrentIndex(m_model->index(row, 0));
}

void RulesPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (m_isOutdated) refresh();
}

void RulesPanel::refreshDetails() {
  const int row = m_view->currentIndex().row();
  const int scrolled = m_details->verticalScrollBar()->value();
  const QString name = row < 0 ? QString() : toQt(m_model->use(row).rule->name);
  const bool isSame = m_details->property("rule").toString() == name;
  m_details->setHtml(row < 0 ? QString() : detailsText(row));
  m_details->setProperty("rule", name);
  if (isSame) m_details->verticalScrollBar()->setValue(scrolled);
}

QString RulesPanel::detailsText(int row) const {
  const RuleUse& use = m_model->use(row);
  return headText(*use.rule) + factsText(*use.rule) + placesText(use);
}

QString RulesPanel::placesText(const RuleUse& use) const {
  QString text;
  const auto add = [&](const QString& title, const std::vector<const Attempt*>& attempts, const QString& kind) {
    text += QStringLiteral("<p>%1</p>").arg(title);
    for (std::size_t i = 0; i < std::min(attempts.size(), kMaxPlaces); ++i)
      text += placeText(*attempts[i], kind + QString::number(i));
    if (attempts.size() > kMaxPlaces) text += tr("<p>and %1 more</p>").arg(attempts.size() - kMaxPlaces);
  };
  if (!use.hits.empty())
    add(countText(use.hits, tr("place where it applies"), tr("places where it applies")) + togetherText(use), use.hits,
        kHitLink);
  if (!use.misses.empty())
    add(countText(use.misses, tr("place where it does not apply"), tr("places where it does not apply")), use.misses,
        kMissLink);
  const bool isTried = use.standing == RuleStanding::Tried && m_model->analysis().isRunnable();
  const bool isUntouched = isTried && use.hits.empty() && use.misses.empty();
  return isUntouched ? tr("<p>No op of this pipeline matches the start of its pattern.</p>") : text;
}

/// Total saving of several hits; a single hit states its own.
QString RulesPanel::togetherText(const RuleUse& use) const {
  const QString saved = predictedText(use.saved(), m_model->analysis().report.device);
  return use.hits.size() < 2 || saved.isEmpty() ? QString() : QStringLiteral(" · ") + saved;
}

QString RulesPanel::placeText(const Attempt& attempt, const QString& link) const {
  const Analysis& analysis = m_model->analysis();
  QStringList sentences = {escaped(attempt.explanation), predictedText(attempt, analysis.report.device),
                           measuredText(attempt).toHtmlEscaped()};
  sentences.removeAll(QString());
  const QString outcome =
      attempt.outcome == Outcome::Fused ? QString() : QStringLiteral(" · ") + toQt(outcomeName(attempt.outcome));
  return QStringLiteral("<p><a href='%1'>%2</a>%3<br>%4</p>")
      .arg(link, idsText(analysis.graph(), attempt), outcome, sentences.join(u' '));
}

/// A hull that was clicked names its rule.
void RulesPanel::followSelection() {
  const int row = m_model->rowOf(m_session.selection().rule());
  if (row >= 0) m_view->setCurrentIndex(m_model->index(row, 0));
}

void RulesPanel::follow(const QUrl& link) {
  const RuleUse& use = m_model->use(m_view->currentIndex().row());
  const QString text = link.toString();
  const Attempt* const hit = attemptAt(use.hits, text, kHitLink);
  const Attempt* const chosen = hit ? hit : attemptAt(use.misses, text, kMissLink);
  if (chosen) m_session.selection().selectFusion(ownersOf(m_model->analysis().graph(), *chosen), toQt(use.rule->name));
}

void RulesPanel::switchRule(const FusionRule& rule, bool isEnabled) {
  m_session.pipeline().apply(setRuleEnabled(m_session.pipeline().document(), rule, isEnabled));
}

}  // namespace fuseline::ui
