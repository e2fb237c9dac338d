// Fields of ops inside blocks.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/block_section.h"

#include "core/edit/block_edits.h"
#include "core/lowering/document_operation.h"
#include "ui/theme/format.h"

#include <QLabel>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kIndentPx = 14;

void addStructure(const PipelineDocument& document, const std::string& block, QStringList& seen, QString& text) {
  const DocumentBlock* inside = document.findBlock(block);
  if (!inside || seen.contains(toQt(block))) return;
  seen.append(toQt(block));
  for (const DocumentOp& op : inside->ops) {
    text += QStringLiteral("/%1:%2").arg(toQt(op.id), toQt(op.operation));
    if (const std::string_view inner = blockNameOf(op); !inner.empty())
      addStructure(document, std::string(inner), seen, text);
  }
}

}  // namespace

BlockSection::BlockSection(Session& session, const Theme& theme, std::string block, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme), m_block(std::move(block)), m_layout(new QVBoxLayout(this)) {
  m_layout->setContentsMargins(0, 6, 0, 0);
  m_layout->setSpacing(2);
  auto* note = new QLabel(noteText(), this);
  note->setWordWrap(true);
  note->setMinimumWidth(1);
  m_layout->addWidget(note);
  m_refreshers.push_back([this, note] { note->setText(noteText()); });
  if (const DocumentBlock* inside = session.pipeline().document().findBlock(m_block))
    for (const DocumentOp& op : inside->ops) addOp(op);
}

QString BlockSection::structureOf(const PipelineDocument& document, const std::string& block) {
  QString text;
  QStringList seen;
  addStructure(document, block, seen, text);
  return text;
}

QString BlockSection::noteText() const {
  const std::ptrdiff_t count = numInstances(m_session.pipeline().document(), m_block);
  return count == 1
             ? tr("<b>Inside %1</b>").arg(toQt(m_block).toHtmlEscaped())
             : tr("<b>Inside %1</b>: changes apply to all %2 instances.").arg(toQt(m_block).toHtmlEscaped()).arg(count);
}

void BlockSection::addOp(const DocumentOp& op) {
  auto* opener = new QToolButton(this);
  opener->setObjectName(toQt(op.id));
  opener->setCheckable(true);
  opener->setAutoRaise(true);
  opener->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  opener->setArrowType(Qt::RightArrow);
  const std::string_view inner = blockNameOf(op);
  opener->setText(
      QStringLiteral("%1 · %2").arg(toQt(op.id), toQt(inner.empty() ? std::string_view(op.operation) : inner)));
  opener->setAccessibleName(tr("%1, inside %2").arg(opener->text(), toQt(m_block)));
  auto* frame = new QWidget(this);
  auto* inside = new QVBoxLayout(frame);
  inside->setContentsMargins(kIndentPx, 0, 0, 6);
  inside->setSpacing(6);
  frame->hide();
  m_frames[toQt(op.id)] = frame;
  m_layout->addWidget(opener);
  m_layout->addWidget(frame);
  connect(opener, &QToolButton::toggled, this, [this, opener, frame, inside, id = op.id](bool isOpen) {
    opener->setArrowType(isOpen ? Qt::DownArrow : Qt::RightArrow);
    if (isOpen && inside->isEmpty()) inside->addWidget(contentOf(id));
    frame->setVisible(isOpen);
  });
}

/// Made when it is first wanted: blocks may hold many.
QWidget* BlockSection::contentOf(const std::string& id) {
  const DocumentBlock* inside = m_session.pipeline().document().findBlock(m_block);
  const auto op = std::ranges::find(inside->ops, id, &DocumentOp::id);
  if (const std::string_view inner = blockNameOf(*op); !inner.empty()) {
    auto* section = new BlockSection(m_session, m_theme, std::string(inner), this);
    m_refreshers.emplace_back([section] { section->refresh(); });
    section->refresh();
    return section;
  }
  auto* content = new QWidget(this);
  auto* layout = new QVBoxLayout(content);
  layout->setContentsMargins(0, 0, 0, 0);
  const OperationPointer operation = operationOf(m_session.pipeline().document(), *op);
  for (const AttributeSpec& spec : operation ? operation->attributes : std::vector<AttributeSpec>()) {
    auto* field = new AttributeField(m_session, m_theme, {toQt(id)}, spec, content, m_block);
    m_refreshers.emplace_back([field] { field->refresh(); });
    field->refresh();
    layout->addWidget(field);
  }
  if (layout->isEmpty()) layout->addWidget(new QLabel(tr("This op has no attributes."), content));
  return content;
}

void BlockSection::refresh() {
  for (const auto& refreshOne : m_refreshers) refreshOne();
}

QWidget* BlockSection::open(const QString& op) const {
  QToolButton* opener = findChild<QToolButton*>(op, Qt::FindDirectChildrenOnly);
  if (!opener) return nullptr;
  opener->setChecked(true);
  return m_frames.value(op);
}

}  // namespace fuseline::ui
