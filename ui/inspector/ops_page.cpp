// The inspector's page of several ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/document_operation.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

const DocumentOp& opOf(const Session& session, const QString& id) {
  return *session.pipeline().document().findOp(id.toStdString());
}

/// None of an op that this version does not know.
std::vector<AttributeSpec> attributesOf(const Session& session, const QString& id) {
  const OperationPointer operation = operationOf(session.pipeline().document(), opOf(session, id));
  return operation ? operation->attributes : std::vector<AttributeSpec>();
}

/// Can one editor serve both?
bool areAlike(const AttributeSpec& a, const AttributeSpec& b) {
  return a.name == b.name && a.type == b.type && a.choices == b.choices;
}

}  // namespace

OpsPage::OpsPage(Session& session, const Theme& theme, QStringList opIds, QWidget* parent)
    : InspectorPage(parent), m_session(session), m_opIds(std::move(opIds)), m_structure(structureOf(session, m_opIds)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(12, 10, 12, 12);
  layout->setSpacing(8);
  auto* title = new QLabel(titleText(), this);
  title->setFont(scaledFont(1.25, QFont::DemiBold));
  layout->addWidget(title);
  layout->addWidget(wrappedLabel(m_opIds.join(QStringLiteral(", ")), this));
  for (const AttributeSpec& spec : sharedAttributes()) {
    m_fields.push_back(new AttributeField(session, theme, m_opIds, spec, this));
    layout->addWidget(m_fields.back());
  }
  m_gemms = new GemmSection(session, m_opIds, this);
  layout->addWidget(m_gemms);
  const QString hint = m_fields.empty() ? tr("These ops have no attributes in common.")
                                        : tr("Changes apply to all selected ops. *2 doubles each value.");
  layout->addWidget(wrappedLabel(hint, this));
  layout->addStretch(1);
}

QString OpsPage::structureOf(const Session& session, const QStringList& opIds) {
  QStringList parts = {QStringLiteral("ops")};
  for (const QString& id : opIds) parts << id << toQt(opOf(session, id).operation);
  return parts.join(u'/');
}

/// "3 × Linear", or "3 ops" of more than one kind.
QString OpsPage::titleText() const {
  const std::string& first = opOf(m_session, m_opIds.front()).operation;
  const bool areOfOneKind =
      std::ranges::all_of(m_opIds, [&](const QString& id) { return opOf(m_session, id).operation == first; });
  return areOfOneKind ? tr("%1 × %2").arg(m_opIds.size()).arg(toQt(first)) : tr("%1 ops").arg(m_opIds.size());
}

std::vector<AttributeSpec> OpsPage::sharedAttributes() const {
  std::vector<AttributeSpec> shared = attributesOf(m_session, m_opIds.front());
  for (const QString& id : m_opIds) {
    const std::vector<AttributeSpec> others = attributesOf(m_session, id);
    std::erase_if(shared, [&](const AttributeSpec& spec) {
      return std::ranges::none_of(others, [&](const AttributeSpec& other) { return areAlike(spec, other); });
    });
  }
  return shared;
}

void OpsPage::refresh() {
  for (AttributeField* field : m_fields) field->refresh();
  m_gemms->refresh();
}

}  // namespace fuseline::ui
