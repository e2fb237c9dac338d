// The inspector dock: which page it shows, and the page of an op.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/inspector_panel.h"

#include "core/edit/links.h"
#include "core/edit/port_values.h"
#include "core/lowering/document_operation.h"
#include "core/support/text.h"
#include "ui/inspector/kept_focus.h"
#include "ui/theme/format.h"
#include "ui/widgets/pane_ring.h"

#include <QHBoxLayout>
#include <QLocale>
#include <QScrollBar>

#include <algorithm>
#include <set>
#include <string>

namespace fuseline::ui {

namespace {

QString dim(const Theme& theme, const QString& text) {
  return QStringLiteral("<span style='color:%1'>%2</span>").arg(theme.colors().dimText.name(), text);
}

QString factRow(const Theme& theme, const QString& name, const QString& value) {
  return QStringLiteral("<tr><td style='padding-right:12px'>%1</td><td>%2</td></tr>").arg(dim(theme, name), value);
}

QString factTable(const QString& rows) {
  return QStringLiteral("<table cellspacing='0' cellpadding='2'>%1</table>").arg(rows);
}

/// One line; its tip has all of the text.
ElidedLabel* lineOf(const QString& text, QWidget* parent) {
  auto* label = new ElidedLabel(parent);
  label->setWholeText(text);
  return label;
}

}  // namespace

QLabel* wrappedLabel(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setWordWrap(true);
  // As wide as the panel, never wider: long words are cut off rather than the fields beside them.
  label->setMinimumWidth(1);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

InspectorPanel::InspectorPanel(Session& session, const Theme& theme, QWidget* parent)
    : QScrollArea(parent), m_session(session), m_theme(theme) {
  setWidgetResizable(true);
  setFocusPolicy(Qt::ClickFocus);  // Tab goes to the fields
  setFrameShape(NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setAccessibleName(tr("Inspector"));
  connect(&session.pipeline(), &OpenPipeline::changed, this, &InspectorPanel::refresh);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &InspectorPanel::refresh);
  connect(&session.selection(), &Selection::changed, this, &InspectorPanel::refresh);
  connect(&session.results(), &LastResults::runTaken, this, &InspectorPanel::refresh);
  connect(&theme, &Theme::changed, this, &InspectorPanel::rebuild);
  rebuild();
}

/// In the order of the document.
QStringList InspectorPanel::selectedOps() const {
  std::set<std::string> selected;
  for (const QString& id : m_session.selection().ids()) selected.insert(id.toStdString());
  QStringList ids;
  if (selected.empty()) return ids;
  for (const DocumentOp& op : m_session.pipeline().document().ops())
    if (selected.contains(op.id)) ids.append(toQt(op.id));
  return ids;
}

QString InspectorPanel::wantedStructure() const {
  const QStringList ops = selectedOps();
  if (ops.size() > 1) return OpsPage::structureOf(m_session, ops);
  return ops.isEmpty() ? PipelinePage::structureOf(m_session) : OpPage::structureOf(m_session, ops.front());
}

void InspectorPanel::refresh() {
  if (m_page && m_page->structure() == wantedStructure()) {
    m_page->refresh();
  } else {
    // Later: the edit may have come from a field of the page that is about to go.
    QMetaObject::invokeMethod(this, &InspectorPanel::rebuild, Qt::QueuedConnection);
  }
}

InspectorPage* InspectorPanel::makePage() {
  const QStringList ops = selectedOps();
  if (ops.size() > 1) return new OpsPage(m_session, m_theme, ops);
  if (ops.isEmpty()) return new PipelinePage(m_session, m_theme);
  auto* page = new OpPage(m_session, m_theme, ops.front());
  connect(page, &OpPage::helpWanted, this, &InspectorPanel::helpWanted);
  return page;
}

void InspectorPanel::rebuild() {
  const KeptFocus focus(m_page);
  m_page = makePage();
  setWidget(m_page);
  joinTabOrder(*this, *m_page);
  m_page->refresh();
  // There is no horizontal scroll bar: a narrower pane would cut the buttons at the right.
  setMinimumWidth(m_page->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width());
  focus.giveTo(*m_page);
}

void InspectorPanel::focusFirstField() {
  rebuild();
  if (QWidget* first = m_page->findChild<ExpressionEdit*>()) first->setFocus(Qt::OtherFocusReason);
}

OpPage::OpPage(Session& session, const Theme& theme, QString opId, QWidget* parent)
    : InspectorPage(parent),
      m_session(session),
      m_theme(theme),
      m_opId(std::move(opId)),
      m_structure(structureOf(session, m_opId)),
      m_layout(new QVBoxLayout(this)) {
  m_layout->setContentsMargins(12, 10, 12, 12);
  m_layout->setSpacing(8);
  createHead();
  createFields();
  createFacts();
  m_layout->addStretch(1);
}

QString OpPage::structureOf(const Session& session, const QString& opId) {
  const DocumentOp* op = session.pipeline().document().findOp(opId.toStdString());
  const QString kind = QStringLiteral("op/%1/%2").arg(opId, op ? toQt(op->operation) : QString());
  return op ? kind + BlockSection::structureOf(session.pipeline().document(), std::string(blockNameOf(*op))) : kind;
}

void OpPage::createHead() {
  const DocumentOp* op = m_session.pipeline().document().findOp(m_opId.toStdString());
  const OperationPointer operation = operationOf(m_session.pipeline().document(), *op);
  auto* title = new QLabel(toQt(op->operation), this);
  title->setFont(scaledFont(1.25, QFont::DemiBold));
  auto* head = new QHBoxLayout;
  head->addWidget(title, 1);
  m_layout->addLayout(head);
  if (operation)
    head->addWidget(makeHelpButton());
  else
    m_layout->addWidget(
        wrappedLabel(tr("Unknown op %1. The file keeps its attributes unchanged.").arg(toQt(op->operation)), this));
  if (operation) m_layout->addWidget(lineOf(toQt(operation->summary), this));
  if (!blockNameOf(*op).empty()) m_layout->addWidget(m_totals = wrappedLabel(QString(), this));
  if (operation && !operation->formula.empty()) {
    m_formula = lineOf(QString(), this);
    m_formula->setFont(QFont(QStringLiteral("monospace"), scaledFont(0.95).pointSize()));
    m_layout->addWidget(m_formula);
  }
  createName();
}

/// The page shows a line each of what the help explains in full.
QToolButton* OpPage::makeHelpButton() {
  auto* help = new QToolButton(this);
  help->setText(QStringLiteral("?"));
  help->setAutoRaise(true);
  help->setToolTip(tr("Help on this op (F1)"));
  help->setAccessibleName(tr("Help on this op"));
  connect(help, &QToolButton::clicked, this, &OpPage::helpWanted);
  return help;
}

void OpPage::createName() {
  m_id = new ExpressionEdit(this);
  m_id->setAccessibleName(tr("Name of the op"));
  connect(m_id, &ExpressionEdit::committedText, this, [this](const QString& text) {
    if (!m_session.rename(m_opId, text)) m_id->setCommitted(m_opId);
  });
  auto* label = new QLabel(tr("name"), this);
  label->setFixedWidth(kLabelWidthPx);
  label->setBuddy(m_id);
  auto* row = new QHBoxLayout;
  row->setSpacing(kFieldGapPx);
  row->addWidget(label);
  row->addWidget(m_id, 1);
  row->addSpacing(QToolButton().sizeHint().width() + kFieldGapPx);  // as wide as fields that can be reset
  m_layout->addSpacing(2);
  m_layout->addLayout(row);
}

void OpPage::createFields() {
  const DocumentOp* op = m_session.pipeline().document().findOp(m_opId.toStdString());
  const OperationPointer operation = operationOf(m_session.pipeline().document(), *op);
  if (!operation) {
    m_layout->addWidget(wrappedLabel(toQt(op->attributes.dump(2)), this));
    return;
  }
  m_attention = new AttentionSection(m_session, m_theme, m_opId, this);
  m_layout->addWidget(m_attention);
  for (const AttributeSpec& spec : operation->attributes) {
    auto* field = new AttributeField(m_session, m_theme, {m_opId}, spec, this);
    m_fields.push_back(field);
    m_layout->addWidget(field);
  }
  m_gemms = new GemmSection(m_session, {m_opId}, this);
  m_layout->addWidget(m_gemms);
  const std::string block(blockNameOf(*op));
  if (block.empty()) return;
  m_inside = new BlockSection(m_session, m_theme, block, this);
  m_layout->addWidget(m_inside);
}

void OpPage::createFacts() {
  m_facts = wrappedLabel(QString(), this);
  m_layout->addSpacing(6);
  m_layout->addWidget(m_facts);
}

void OpPage::refresh() {
  const DocumentOp* op = m_session.pipeline().document().findOp(m_opId.toStdString());
  if (!op) return;
  const OperationPointer operation = operationOf(m_session.pipeline().document(), *op);
  if (m_formula && operation) m_formula->setWholeText(toQt(operation->formula));
  m_id->setCommitted(m_opId);
  m_id->setReadOnly(m_session.pipeline().document().isReadOnly());
  for (AttributeField* field : m_fields) field->refresh();
  if (m_gemms) m_gemms->refresh();
  if (m_attention) m_attention->refresh();
  if (m_inside) m_inside->refresh();
  if (m_totals) m_totals->setText(factTable(totalLines()));
  m_facts->setText(factsText());
}

QString OpPage::specLines(const FusibleOperation& operation) const {
  const Analysis& analysis = *m_session.plan().analysis();
  const PortValues values(analysis.graph(), analysis.documentGraph());
  const RankParts parts(analysis);
  const PipelineDocument& document = m_session.pipeline().document();
  const auto specOf = [&](const Endpoint& endpoint) {
    const Value* value = values.at(endpoint);
    return value ? specText(value->spec, parts.of(*value)) : QStringLiteral("?");
  };
  QString rows;
  for (const Port& port : operation.inputs) {
    const auto link = linkInto(document, {m_opId.toStdString(), port.name});
    const QString source = link ? dim(m_theme, tr(" from %1").arg(toQt(toString(link->from)))) : QString();
    const QString value = link ? specOf(link->from) + source : tr("not connected");
    rows += factRow(m_theme, tr("input %1").arg(toQt(port.name)), value);
  }
  for (const Port& port : operation.outputs) {
    rows += factRow(m_theme, tr("output %1").arg(toQt(port.name)), specOf({m_opId.toStdString(), port.name}));
  }
  return rows;
}

/// "512×2048 bf16, sharded along axis 1 of [512, 4096]".
QString OpPage::specText(const TensorSpec& spec, const RankPart& part) const {
  const QString placement = placementText(spec.shape, part);
  return placement.isEmpty() ? formatSpec(spec) : formatSpec(spec) + dim(m_theme, QStringLiteral(" · ") + placement);
}

/// The load of the experts in the last run, for each routing of this op.
QString OpPage::loadText() const {
  const std::optional<LastRun>& run = m_session.results().lastRun();
  QStringList lines;
  if (!run || run->isStale) return {};
  for (const ExpertLoad& load : run->record.expertLoads)
    if (load.owner == m_opId.toStdString()) lines << toQt(expertLoadLine(load)).toHtmlEscaped();
  return lines.join(QStringLiteral("<br>"));
}

/// Sums over the ops of a block, for one rank.
QString OpPage::totalLines() const {
  const Graph& graph = m_session.plan().analysis()->graph();
  int numParameters = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  double numFlops = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.owner != m_opId.toStdString()) continue;
    for (const TensorSpec& parameter : node.parameters) {
      ++numParameters;
      elements += parameter.numElements();
      bytes += parameter.bytes();
    }
    if (node.operation->flops)
      numFlops += static_cast<double>(node.operation->flops(node.attributes, graph.inputSpecs(id)).forward);
  }
  QString rows;
  const QString count = QLocale(QLocale::English).toString(static_cast<qlonglong>(elements));
  if (numParameters > 1)
    rows += factRow(m_theme, tr("parameters"), count + QStringLiteral(" · ") + toQt(formatBytes(bytes)));
  if (numFlops > 0) rows += factRow(m_theme, tr("Forward FLOP"), toQt(formatFlops(numFlops)));
  return rows;
}

QString OpPage::factsText() const {
  const DocumentOp* op = m_session.pipeline().document().findOp(m_opId.toStdString());
  const OperationPointer operation = operationOf(m_session.pipeline().document(), *op);
  if (!operation) return QString();
  QString rows = (m_totals ? QString() : totalLines()) + specLines(*operation);
  if (op->isBypassed()) rows += factRow(m_theme, tr("bypassed"), tr("passes its main input through"));
  const RankParts parts(*m_session.plan().analysis());
  for (const Node& node : m_session.plan().analysis()->graph().nodes()) {
    if (node.owner != op->id) continue;
    for (std::size_t slot = 0; slot < node.parameters.size(); ++slot) {
      // Inside an instance of a block, with the op it belongs to: "fc1.weight".
      const QString name = toQt(node.parameterName(static_cast<int>(slot))).mid(m_opId.size() + 1);
      rows += factRow(m_theme, name,
                      specText(node.parameters[slot], parts.ofParameter(node.parameterName(static_cast<int>(slot)))));
    }
  }
  if (const QString communication = parts.communicationOf(m_opId.toStdString()); !communication.isEmpty())
    rows += factRow(m_theme, tr("communication"), QString(communication).replace(u'\n', QStringLiteral("<br>")));
  if (const QString load = loadText(); !load.isEmpty()) rows += factRow(m_theme, tr("expert load"), load);
  return factTable(rows);
}

}  // namespace fuseline::ui
