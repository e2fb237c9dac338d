// Finds the repair of a field by the edit that it makes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/field_fix.h"

#include "ui/theme/format.h"

#include <utility>

namespace fuseline::ui {

FieldFix::FieldFix(Session& session, std::string op, std::string attribute, QWidget* parent)
    : QPushButton(parent), m_session(session), m_op(std::move(op)), m_attribute(std::move(attribute)) {
  setObjectName(QStringLiteral("fieldFix"));
  setAccessibleName(tr("Fix %1").arg(toQt(m_attribute)));
  hide();
  connect(this, &QPushButton::clicked, this, &FieldFix::apply);
}

void FieldFix::refresh() {
  const Repair* const repair = find();
  setText(repair ? toQt(repair->label) : QString());
  setAccessibleDescription(text());
  setVisible(repair != nullptr);
}

const Repair* FieldFix::find() const {
  for (const Diagnostic& problem : m_session.plan().analysis()->lowered.diagnostics)
    for (const Repair& repair : problem.repairs) {
      const auto* set = std::get_if<SetAttribute>(&repair.edit);
      if (set && set->id == m_op && set->name == m_attribute) return &repair;
    }
  return nullptr;
}

void FieldFix::apply() {
  const Repair* const repair = find();
  if (!repair) return;
  const Edit edit = repair->edit;  // the analysis may go
  m_session.pipeline().apply(edit);
}

}  // namespace fuseline::ui
