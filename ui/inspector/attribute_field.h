// AttributeField: the editor of one attribute of one op or of several, made from its AttributeSpec.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attributes.h"
#include "ui/inspector/field_fix.h"
#include "ui/inspector/field_problem.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/widgets/expression_edit.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QStringList>
#include <QToolButton>
#include <QWidget>

#include <functional>

namespace fuseline::ui {

/// Labels are this wide in the whole inspector, so that its fields stand in one column. The longest name of an
/// attribute fits.
inline constexpr int kLabelWidthPx = 172;
inline constexpr int kFieldGapPx = 6;

class AttributeField : public QWidget {
  Q_OBJECT

 public:
  /// opIds: of one op at least. What is set is set in all of them, as one step of undo. block: the one that they are
  /// written in; empty: the pipeline.
  AttributeField(Session& session, const Theme& theme, QStringList opIds, const AttributeSpec& spec,
                 QWidget* parent = nullptr, std::string block = {});
  /// Takes over what the document and the last analysis say.
  void refresh();
  QWidget* editor() const;

 private:
  void createEditor();
  void createCombo();
  /// valueOf: from what an op has written, null for nothing.
  void setEach(const std::function<Json(const Json& written)>& valueOf);
  void set(const Json& value);
  void setTyped(const QString& text);
  Json written(const QString& opId) const;
  const std::vector<DocumentOp>& ops() const;
  bool isAboutField(const Diagnostic& problem) const;
  bool isMixed() const;
  QString fallbackText() const;
  void refreshEditor();
  QString resolvedText() const;
  QString problemText() const;

  Session& m_session;
  const Theme& m_theme;
  QStringList m_opIds;
  const std::string m_block;
  const AttributeSpec m_spec;  // a copy: the op of a Formula lives no longer than the question for it
  QLabel* m_label;
  QCheckBox* m_check = nullptr;
  QComboBox* m_combo = nullptr;
  ExpressionEdit* m_edit = nullptr;
  QLabel* m_resolved;
  QToolButton* m_reset;
  FieldProblem* m_problem;
  FieldFix* m_fix;
};

/// The integer symbols of a document, for evaluating expressions beside their editors.
std::map<std::string, std::int64_t> integerSymbols(const PipelineDocument& document);

}  // namespace fuseline::ui
