// Finds the problems of a field by their pointers.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/field_problem.h"

#include "core/document/file_format.h"
#include "core/lowering/expression.h"
#include "ui/inspector/attribute_field.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

template <class IsAbout>
QString sentencesOf(const Session& session, IsAbout isAbout) {
  QStringList lines;
  for (const Diagnostic& problem : session.plan().analysis()->lowered.diagnostics)
    if (problem.severity != Severity::Note && isAbout(problem) && !lines.contains(toQt(problem.message)))
      lines.append(toQt(problem.message));
  return lines.join(u'\n');
}

bool standsIn(const Diagnostic& problem, const QString& pointer) {
  const QString place = toQt(problem.pointer);
  return place == pointer || place.startsWith(pointer + u'/');
}

/// Whether an expression at the pointer has the symbol in it.
bool usesSymbol(const Json& document, const std::string& pointer, const std::string& name) {
  if (pointer.empty() || pointer.front() != '/') return false;
  const Json::json_pointer place(pointer);
  if (!document.contains(place) || !document[place].is_string()) return false;
  const std::vector<std::string> names = symbolNames(document[place].get<std::string>());
  return std::ranges::find(names, name) != names.end();
}

bool isNegative(const PipelineDocument& document, const std::string& name) {
  const auto symbols = integerSymbols(document);
  const auto found = symbols.find(name);
  return found != symbols.end() && found->second < 0;
}

}  // namespace

FieldProblem::FieldProblem(const Theme& theme, QWidget* parent) : QLabel(parent), m_theme(theme) {
  setWordWrap(true);
  setMinimumWidth(1);
  setTextFormat(Qt::PlainText);
  hide();
}

void FieldProblem::tell(const QString& sentences, ExpressionEdit* edit) {
  setText(sentences);
  setStyleSheet(QStringLiteral("color: %1").arg(m_theme.colors().error.name()));
  setVisible(!sentences.isEmpty());
  if (edit) edit->setProblemColor(sentences.isEmpty() ? QColor() : m_theme.colors().error);
}

QString problemsAt(const Session& session, const QString& pointer) {
  return sentencesOf(session, [&](const Diagnostic& problem) { return standsIn(problem, pointer); });
}

QString problemsOfSymbol(const Session& session, const std::string& name) {
  const QString pointer = QStringLiteral("/symbols/%1").arg(toQt(name));
  const bool hasErrors = fuseline::hasErrors(session.plan().analysis()->lowered.diagnostics);
  if (!hasErrors || !isNegative(session.pipeline().document(), name)) return problemsAt(session, pointer);
  const Json document = toJson(session.pipeline().document());
  return sentencesOf(session, [&](const Diagnostic& problem) {
    return standsIn(problem, pointer) || usesSymbol(document, problem.pointer, name);
  });
}

}  // namespace fuseline::ui
