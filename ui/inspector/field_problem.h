// FieldProblem: the sentences beneath a field of the inspector whose content is a problem, and its border.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/widgets/expression_edit.h"

#include <QLabel>

namespace fuseline::ui {

class FieldProblem : public QLabel {
  Q_OBJECT

 public:
  explicit FieldProblem(const Theme& theme, QWidget* parent = nullptr);
  /// Empty: there is none. edit: gets the border and the description; nullptr for other kinds of fields.
  void tell(const QString& sentences, ExpressionEdit* edit);

 private:
  const Theme& m_theme;
};

/// Errors and warnings of what stands at a JSON pointer of the document, or inside it: a line each.
QString problemsAt(const Session& session, const QString& pointer);
/// Those of a symbol's value. Nobody looks for what a negative one breaks at the shapes that it stands in, so those
/// are told, too.
QString problemsOfSymbol(const Session& session, const std::string& name);

}  // namespace fuseline::ui
