// AttributeField: the editor of one attribute, made from its AttributeSpec.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attributes.h"
#include "ui/panels/expression_edit.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QToolButton>
#include <QWidget>

namespace fuseline::ui {

/// Labels are this wide in the whole inspector, so that its fields stand in one column.
inline constexpr int kLabelWidthPx = 138;

class AttributeField : public QWidget {
  Q_OBJECT

 public:
  AttributeField(Session& session, const Theme& theme, QString opId, const AttributeSpec& spec,
                 QWidget* parent = nullptr);
  /// Takes over what the document and the last analysis say.
  void refresh();
  QWidget* editor() const;

 private:
  void createEditor();
  void createCombo();
  void set(const Json& value);
  const Json* written() const;
  void refreshEditor();
  QString resolvedText() const;
  QString problemText() const;

  Session& m_session;
  const Theme& m_theme;
  QString m_opId;
  const AttributeSpec m_spec;  // a copy: the op of a Formula lives no longer than the question for it
  QLabel* m_label;
  QCheckBox* m_check = nullptr;
  QComboBox* m_combo = nullptr;
  ExpressionEdit* m_edit = nullptr;
  QLabel* m_resolved;
  QToolButton* m_reset;
  QLabel* m_problem;
};

/// The integer symbols of a document, for evaluating expressions beside their editors.
std::map<std::string, std::int64_t> integerSymbols(const PipelineDocument& document);

}  // namespace fuseline::ui
