// Lays a hover card out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/library/operation_card.h"

#include "core/fusion/rule_text.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QStringList>

#include <string>

namespace fuseline::ui {

namespace {

QString escaped(const std::string& text) { return toQt(text).toHtmlEscaped(); }

/// Empty where there is nothing to say.
QString row(const char* label, const QString& html) {
  if (html.isEmpty()) return {};
  return QStringLiteral("<tr><td style='padding-right:10px'><i>%1</i></td><td>%2</td></tr>")
      .arg(translated(label), html);
}

template <class Tensors>
QString tensorList(const Tensors& tensors) {
  QStringList names;
  for (const auto& tensor : tensors)
    names.append(QStringLiteral("%1 %2").arg(escaped(tensor.name), escaped(tensor.shape)));
  return names.join(QStringLiteral(", "));
}

QString attributeText(const AttributeSpec& attribute) {
  const QString name = escaped(attribute.name);
  const QString value = escaped(toString(attribute.defaultValue));
  return value.isEmpty() ? name : QStringLiteral("%1 = %2").arg(name, value);
}

QString attributeList(const FusibleOperation& operation) {
  QStringList texts;
  for (const AttributeSpec& attribute : operation.attributes) texts.append(attributeText(attribute));
  return texts.join(QStringLiteral(", "));
}

QString fusionList(const FusibleOperation& operation) {
  QStringList texts;
  for (const FusionRule* rule : rulesFor(operation))
    texts.append(QStringLiteral("%1: %2").arg(escaped(rule->name), escaped(patternText(*rule))));
  return texts.join(QStringLiteral("<br>"));
}

QString costText(const FusibleOperation& operation, const std::optional<OperationCost>& cost) {
  if (cost) return escaped(toString(*cost));
  const std::optional<OperationCost> sample = sampleCost(operation);
  return sample ? translated("%1, with x %2").arg(escaped(toString(*sample)), formatSpec(sampleInput(operation)))
                : QString();
}

}  // namespace

QString operationTip(const FusibleOperation& operation, const QString& title,
                     const std::optional<OperationCost>& cost) {
  QStringList lines = {QStringLiteral("<b>%1</b> %2").arg(escaped(operation.name), title.toHtmlEscaped()),
                       escaped(operation.summary), escaped(operation.formula)};
  if (cost) lines.append(escaped(toString(*cost)));
  lines.removeAll(QString());
  return lines.join(QStringLiteral("<br>"));
}

QString operationCard(const FusibleOperation& operation, const QString& title,
                      const std::optional<OperationCost>& cost) {
  QString card = QStringLiteral("<b>%1</b> %2<br>%3")
                     .arg(escaped(operation.name), title.toHtmlEscaped(), escaped(operation.summary));
  const std::string note = operation.noteFor(defaultAttributes(operation));
  if (!note.empty()) card += QStringLiteral("<br><i>%1</i>").arg(escaped(note));
  card += QStringLiteral("<table>");
  card += row("formula", escaped(operation.formula)) + row("derivative", escaped(operation.derivative));
  card += row("inputs", tensorList(operation.inputs)) + row("parameters", tensorList(operation.parameters));
  card += row("outputs", tensorList(operation.outputs)) + row("keeps", tensorList(operation.residuals));
  card += row("attributes<br>(defaults)", attributeList(operation)) + row("cost", costText(operation, cost));
  card += row("fusions", fusionList(operation)) + row("source", escaped(operation.source));
  return card + QStringLiteral("</table>");
}

}  // namespace fuseline::ui
