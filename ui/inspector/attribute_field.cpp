// One row of the inspector.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/attribute_field.h"

#include "core/lowering/expression.h"
#include "ui/theme/format.h"
#include "ui/widgets/elided_label.h"

#include <QGridLayout>
#include <QSignalBlocker>

#include <algorithm>

namespace fuseline::ui {

std::map<std::string, std::int64_t> integerSymbols(const PipelineDocument& document) {
  std::map<std::string, std::int64_t> symbols;
  for (const auto& [name, value] : document.symbols().items()) {
    if (value.is_number_integer()) symbols[name] = value.get<std::int64_t>();
  }
  return symbols;
}

AttributeField::AttributeField(Session& session, const Theme& theme, QStringList opIds, const AttributeSpec& spec,
                               QWidget* parent, std::string block)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_opIds(std::move(opIds)),
      m_block(std::move(block)),
      m_spec(spec),
      m_label(new ElidedLabel(this)),
      m_resolved(new QLabel(this)),
      m_reset(new QToolButton(this)),
      m_problem(new FieldProblem(theme, this)),
      m_fix(new FieldFix(session, m_block.empty() ? m_opIds.front().toStdString() : std::string(), spec.name, this)) {
  createEditor();
  m_label->setText(toQt(spec.name));
  m_label->setBuddy(editor());
  m_label->setFixedWidth(kLabelWidthPx);
  if (!m_check) editor()->setSizePolicy(QSizePolicy::Expanding, editor()->sizePolicy().verticalPolicy());
  const QString unit = spec.unit.empty() ? QString() : tr(" Unit: %1.").arg(toQt(spec.unit));
  editor()->setToolTip(toQt(spec.help) + unit);
  m_label->setToolTip(toQt(spec.name) + QStringLiteral(": ") + editor()->toolTip());  // the name may be cut
  editor()->setAccessibleName(toQt(spec.name));
  editor()->setAccessibleDescription(toQt(spec.help));
  m_reset->setAutoRaise(true);
  m_reset->setToolTip(tr("Reset to default"));
  m_reset->setAccessibleName(tr("Reset %1").arg(toQt(spec.name)));
  QSizePolicy keepsRoom = m_reset->sizePolicy();
  keepsRoom.setRetainSizeWhenHidden(true);
  m_reset->setSizePolicy(keepsRoom);
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setVerticalSpacing(2);
  layout->setHorizontalSpacing(kFieldGapPx);
  layout->addWidget(m_label, 0, 0);
  layout->addWidget(editor(), 0, 1);
  layout->addWidget(m_resolved, 0, 1, Qt::AlignRight | Qt::AlignVCenter);  // within the field, behind what is typed
  m_resolved->setAttribute(Qt::WA_TransparentForMouseEvents);
  m_resolved->setContentsMargins(0, 0, kFieldGapPx, 0);
  m_resolved->raise();
  layout->addWidget(m_reset, 0, 2);
  layout->addWidget(m_problem, 1, 1, 1, 2);
  layout->addWidget(m_fix, 2, 1, 1, 2);
  layout->setColumnStretch(1, 1);
  connect(m_reset, &QToolButton::clicked, this, [this] { set(nullptr); });
}

QWidget* AttributeField::editor() const {
  if (m_check) return m_check;
  return m_combo ? static_cast<QWidget*>(m_combo) : m_edit;
}

void AttributeField::createEditor() {
  if (m_spec.type == AttributeType::Boolean) {
    m_check = new QCheckBox(this);
    connect(m_check, &QCheckBox::clicked, this, [this](bool isChecked) { set(isChecked); });
  } else if (!m_spec.choices.empty()) {
    createCombo();
  } else {
    m_edit = new ExpressionEdit(this);
    connect(m_edit, &ExpressionEdit::committedText, this, &AttributeField::setTyped);
  }
}

void AttributeField::createCombo() {
  m_combo = new QComboBox(this);
  m_combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  if (std::holds_alternative<std::monostate>(m_spec.defaultValue)) m_combo->addItem(tr("not set"), QString());
  for (const std::string& choice : m_spec.choices) m_combo->addItem(toQt(choice), toQt(choice));
  connect(m_combo, &QComboBox::activated, this,
          [this] { set(jsonFromEditor(m_combo->currentData().toString(), AttributeType::Text)); });
}

void AttributeField::setEach(const std::function<Json(const Json& written)>& valueOf) {
  EditGroup group{tr("Set %1 of %2").arg(toQt(m_spec.name), counted(m_opIds.size(), tr("op"), tr("ops"))).toStdString(),
                  {}};
  for (const QString& id : m_opIds)
    group.edits.push_back(SetAttribute{.id = id.toStdString(), .name = m_spec.name, .value = valueOf(written(id))});
  const Edit edit = group.edits.size() == 1 ? group.edits.front() : Edit(std::move(group));
  m_session.pipeline().apply(m_block.empty() ? edit : Edit(EditInBlock{m_block, {edit}}));
  refresh();
}

void AttributeField::set(const Json& value) {
  setEach([&](const Json&) { return value; });
}

/// "*2" goes on from what each op has.
void AttributeField::setTyped(const QString& text) {
  const bool isWhole = m_spec.type == AttributeType::Integer || m_spec.type == AttributeType::IntegerList;
  setEach([&](const Json& written) {
    if (!isWhole) return jsonFromEditor(text, m_spec.type);
    const QString before = written.is_null() ? toQt(toString(m_spec.defaultValue)) : editorText(written);
    const bool isList = before.contains(u',');
    return jsonFromEditor(toQt(typedExpression(text.toStdString(), isList ? "" : before.toStdString())), m_spec.type);
  });
}

Json AttributeField::written(const QString& opId) const {
  const auto op = std::ranges::find(ops(), opId.toStdString(), &DocumentOp::id);
  if (op == ops().end() || !op->attributes.is_object()) return nullptr;
  const auto found = op->attributes.find(m_spec.name);
  return found == op->attributes.end() ? Json() : *found;
}

/// Ops of the pipeline or block that the field belongs to; empty if the block was removed.
const std::vector<DocumentOp>& AttributeField::ops() const {
  static const std::vector<DocumentOp> none;
  if (m_block.empty()) return m_session.pipeline().document().ops();
  const DocumentBlock* block = m_session.pipeline().document().findBlock(m_block);
  return block ? block->ops : none;
}

bool AttributeField::isMixed() const {
  return std::ranges::any_of(m_opIds, [&](const QString& id) { return written(id) != written(m_opIds.front()); });
}

/// Placeholder of an empty field.
QString AttributeField::fallbackText() const {
  if (isMixed()) return tr("different");
  if (m_spec.isRequired()) return tr("required");
  const QString fallback = toQt(toString(m_spec.defaultValue));
  return fallback.isEmpty() ? tr("not set") : fallback;
}

void AttributeField::refresh() {
  refreshEditor();
  const bool isWritten = std::ranges::any_of(m_opIds, [&](const QString& id) { return !written(id).is_null(); });
  QFont font = m_label->font();
  font.setBold(isWritten && !m_spec.isRequired());
  m_label->setFont(font);
  m_reset->setVisible(isWritten && !m_spec.isRequired());
  m_reset->setIcon(m_theme.icon(QStringLiteral("reset")));
  m_resolved->setText(resolvedText());
  m_resolved->setStyleSheet(QStringLiteral("color: %1").arg(m_theme.colors().dimText.name()));
  m_resolved->setVisible(!m_resolved->text().isEmpty());
  if (m_edit) m_edit->setTextMargins(0, 0, m_resolved->text().isEmpty() ? 0 : m_resolved->sizeHint().width(), 0);
  m_problem->tell(problemText(), m_edit);
  m_fix->refresh();
  setEnabled(!m_session.pipeline().document().isReadOnly());
}

void AttributeField::refreshEditor() {
  const bool isOne = !isMixed();
  const Json value = isOne ? written(m_opIds.front()) : Json();
  if (m_check) {
    const auto* fallback = std::get_if<bool>(&m_spec.defaultValue);
    const bool isOn = value.is_boolean() ? value.get<bool>() : fallback && *fallback;
    m_check->setTristate(false);  // "mixed values" cannot be chosen
    m_check->setCheckState(!isOne ? Qt::PartiallyChecked : isOn ? Qt::Checked : Qt::Unchecked);
  } else if (m_combo) {
    const QString text = value.is_null() ? toQt(toString(m_spec.defaultValue)) : editorText(value);
    int index = m_combo->findData(text);
    if (index < 0) {
      m_combo->addItem(text, text);  // not a legal choice: shown as it is, the problem below says so
      index = m_combo->count() - 1;
    }
    m_combo->setPlaceholderText(fallbackText());
    m_combo->setCurrentIndex(isOne ? index : -1);
  } else {
    m_edit->setPlaceholderText(fallbackText());
    m_edit->setCommitted(value.is_null() ? QString() : editorText(value));
  }
}

QString AttributeField::resolvedText() const {
  const Json value = isMixed() ? Json() : written(m_opIds.front());
  const bool isNumber = m_spec.type == AttributeType::Integer || m_spec.type == AttributeType::IntegerList;
  if (value.is_null() || !isNumber || value.is_number()) return QString();
  const auto symbols = integerSymbols(m_session.pipeline().document());
  QStringList parts;
  bool hasExpression = false;
  for (const Json& item : value.is_array() ? value : Json::array({value})) {
    hasExpression = hasExpression || item.is_string();
    const auto result = evaluateExpression(editorText(item).toStdString(), symbols);
    if (!result) return QString();
    parts.append(QString::number(*result));
  }
  return hasExpression ? QStringLiteral("= %1").arg(parts.join(QStringLiteral(", "))) : QString();
}

/// Problems inside of blocks are told of instances, but their pointers say where they stand.
bool AttributeField::isAboutField(const Diagnostic& problem) const {
  const QString pointer = toQt(problem.pointer);
  if (!pointer.endsWith(QStringLiteral("/attributes/%1").arg(toQt(m_spec.name)))) return false;
  if (m_block.empty()) return m_opIds.contains(toQt(problem.node));
  const auto op = std::ranges::find(ops(), m_opIds.front().toStdString(), &DocumentOp::id);
  return pointer.startsWith(QStringLiteral("/blocks/%1/ops/%2/").arg(toQt(m_block)).arg(op - ops().begin()));
}

QString AttributeField::problemText() const {
  QStringList lines;
  for (const Diagnostic& problem : m_session.plan().analysis()->lowered.diagnostics)
    if (isAboutField(problem) && problem.severity != Severity::Note && !lines.contains(toQt(problem.message)))
      lines.append(toQt(problem.message));
  return lines.join(u'\n');
}

}  // namespace fuseline::ui
