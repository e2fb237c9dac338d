// Parses terms, and looks the values up in the graph.
// SPDX-License-Identifier: Apache-2.0
#include "ui/outline/attribute_term.h"

#include "ui/theme/format.h"

#include <QRegularExpression>

#include <algorithm>
#include <array>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr QLatin1String kTime("time");
constexpr QLatin1String kDtype("dtype");
constexpr QLatin1String kOp("op");

/// A number with an optional unit of time, in nanoseconds where there is one.
std::optional<double> numberOf(const QString& text) {
  static const QRegularExpression kNumber(QStringLiteral("^([-+]?[\\d.]+(?:e[-+]?\\d+)?)\\s*(ns|us|µs|ms|s)?$"),
                                          QRegularExpression::CaseInsensitiveOption);
  static const std::array<std::pair<QLatin1String, double>, 5> kUnits = {{{QLatin1String("ns"), 1.0},
                                                                          {QLatin1String("us"), 1e3},
                                                                          {QLatin1String("ms"), 1e6},
                                                                          {QLatin1String("s"), 1e9},
                                                                          {QLatin1String(""), 1.0}}};
  const QRegularExpressionMatch match = kNumber.match(text);
  bool isNumber = match.hasMatch();
  const double number = isNumber ? match.captured(1).toDouble(&isNumber) : 0.0;
  if (!isNumber) return std::nullopt;
  const QString unit = match.captured(2).toLower().replace(u'µ', u'u');
  for (const auto& [name, factor] : kUnits)
    if (unit == name) return number * factor;
  return std::nullopt;
}

bool compareNumbers(double actual, const QString& comparison, double wanted) {
  if (comparison == QStringLiteral("<")) return actual < wanted;
  if (comparison == QStringLiteral("<=")) return actual <= wanted;
  if (comparison == QStringLiteral(">")) return actual > wanted;
  if (comparison == QStringLiteral(">=")) return actual >= wanted;
  return (actual == wanted) != (comparison == QStringLiteral("!="));
}

bool holds(const AttributeTerm& term, const QString& actual) {
  const auto left = numberOf(actual);
  const auto right = numberOf(term.value);
  if (left && right) return compareNumbers(*left, term.comparison, *right);
  if (term.comparison == QStringLiteral(":")) return actual.contains(term.value, Qt::CaseInsensitive);
  const bool isEqual = actual.compare(term.value, Qt::CaseInsensitive) == 0;
  if (term.comparison == QStringLiteral("!=")) return !isEqual;
  return term.comparison == QStringLiteral("=") && isEqual;
}

}  // namespace

SearchQuery searchQuery(const QString& query) {
  static const QRegularExpression kTerm(QStringLiteral("([A-Za-z_]\\w*)\\s*(!=|<=|>=|=|:|<|>)\\s*([^\\s<>=:!]+)"));
  SearchQuery parts{.words = query, .terms = {}};
  for (auto match = kTerm.globalMatch(query); match.hasNext();) {
    const QRegularExpressionMatch term = match.next();
    parts.terms.push_back({term.captured(1), term.captured(2), term.captured(3)});
  }
  parts.words.remove(kTerm);
  return parts;
}

bool AttributeSearch::fits(const DocumentOp& op, const std::vector<AttributeTerm>& terms) const {
  return std::ranges::all_of(terms, [&](const AttributeTerm& term) {
    const QStringList values = valuesOf(op, term.name);
    return std::ranges::any_of(values, [&](const QString& value) { return holds(term, value); });
  });
}

/// Those written and those resolved.
QStringList AttributeSearch::valuesOf(const DocumentOp& op, const QString& name) const {
  if (name == kTime) return timesOf(op.id);
  if (name == kOp) return {toQt(op.operation)};
  QStringList values = resolvedValues(op.id, name);
  if (op.attributes.is_object() && op.attributes.contains(name.toStdString())) {
    const Json& written = op.attributes[name.toStdString()];
    values.append(toQt(written.is_string() ? written.get<std::string>() : written.dump()));
  }
  return values;
}

/// dtype: also that of the outputs.
QStringList AttributeSearch::resolvedValues(const std::string& op, const QString& name) const {
  QStringList values;
  const Graph& graph = m_analysis.graph();
  for (const Node& node : graph.nodes()) {
    if (node.owner != op) continue;
    if (node.attributes.has(name.toStdString())) values.append(toQt(toString(node.attributes.get(name.toStdString()))));
    if (name != kDtype) continue;
    for (const ValueId output : node.outputs) values.append(toQt(dtypeName(graph.value(output).spec.dtype)));
  }
  return values;
}

/// Times of each pass, in nanoseconds.
QStringList AttributeSearch::timesOf(const std::string& op) const {
  if (!m_times || !m_times->ops.contains(op)) return {};
  const OpTimes& times = m_times->ops.at(op);
  QStringList values;
  for (const OpPass* pass : {&times.forward, &times.backward})
    if (pass->ns > 0.0) values.append(QString::number(pass->ns, 'f', 3));
  return values;
}

}  // namespace fuseline::ui
