// Matches what is known of each node against words.
// SPDX-License-Identifier: Apache-2.0
#include "ui/outline/node_search.h"

#include "core/edit/links.h"
#include "core/lowering/document_operation.h"
#include "ui/outline/attribute_term.h"
#include "ui/theme/format.h"

#include <QStringList>

#include <algorithm>
#include <map>

namespace fuseline::ui {

namespace {

constexpr qsizetype kMostTitleChars = 60;

/// "4096 × 1024" and "4096x1024" are the same.
QString plain(QString text) { return text.replace(QStringLiteral(" × "), QStringLiteral("x")); }

bool hasWord(const QStringList& texts, const QString& word) {
  return std::ranges::any_of(texts,
                             [&](const QString& text) { return plain(text).contains(word, Qt::CaseInsensitive); });
}

/// Search terms of nodes in addition to their names, by id: fusions and problem codes.
std::map<std::string, QStringList> factsOf(const Analysis& analysis) {
  std::map<std::string, QStringList> facts;
  const Graph& graph = analysis.graph();
  for (const auto* list : {&analysis.report.forward, &analysis.report.backward})
    for (const FusedOperation& entry : *list)
      for (const NodeId id : entry.nodes)
        if (entry.isFused()) facts[graph.node(id).owner].append(toQt(entry.rule->name));
  for (const Diagnostic& diagnostic : analysis.lowered.diagnostics)
    if (!diagnostic.node.empty()) facts[diagnostic.node].append(toQt(diagnostic.code));
  for (auto& [id, texts] : facts) texts.removeDuplicates();
  return facts;
}

class NodeSearch {
 public:
  NodeSearch(const PipelineDocument& document, const Analysis& analysis, const SearchQuery& query,
             const MeasuredOps* times)
      : m_document(document),
        m_analysis(analysis),
        m_words(searchWords(query.words)),
        m_terms(query.terms),
        m_attributes(analysis, times),
        m_facts(factsOf(analysis)) {}

  std::vector<FoundNode> run() && {
    if (!m_terms.empty()) return std::move(*this).runOverOps();
    for (const DocumentInput& input : m_document.inputs()) add(input.id, QStringLiteral("Input"), {{input.id, {}}});
    for (const DocumentOp& op : m_document.ops()) add(op.id, toQt(op.operation), outputsOf(op));
    for (const DocumentOutput& output : m_document.outputs()) add(output.id, QStringLiteral("Output"), {output.from});
    m_found.insert(m_found.end(), m_foundByFacts.begin(), m_foundByFacts.end());
    for (const DocumentFrame& frame : m_document.frames())
      if (frame.area && !frame.id.empty()) addFrame(frame);
    return std::move(m_found);
  }

 private:
  std::vector<FoundNode> runOverOps() && {
    for (const DocumentOp& op : m_document.ops())
      if (m_attributes.fits(op, m_terms)) add(op.id, toQt(op.operation), outputsOf(op));
    m_found.insert(m_found.end(), m_foundByFacts.begin(), m_foundByFacts.end());
    return std::move(m_found);
  }

  std::vector<Endpoint> outputsOf(const DocumentOp& op) const {
    std::vector<Endpoint> outputs;
    if (const OperationPointer operation = operationOf(m_document, op))
      for (const Port& port : operation->outputs) outputs.push_back({op.id, port.name});
    return outputs;
  }

  void add(const std::string& id, const QString& type, const std::vector<Endpoint>& makes) {
    const QStringList names = {toQt(id), type};
    QStringList facts = m_facts[id];
    for (auto port = makes.rbegin(); port != makes.rend(); ++port)
      if (const Value* value = valueAt(m_analysis.graph(), *port)) facts.prepend(formatSpec(value->spec));
    FoundNode node{.id = id, .title = names.join(QStringLiteral(" · ")), .detail = facts.value(0)};
    if (hasAllWords(names, m_words)) return m_found.push_back(std::move(node));
    if (!hasAllWords(names + facts, m_words)) return;
    const auto isWhy = [&](const QString& fact) {
      return std::ranges::any_of(m_words, [&](const QString& word) { return hasWord({fact}, word); });
    };
    if (const auto why = std::ranges::find_if(facts, isWhy); why != facts.end()) node.detail = *why;
    m_foundByFacts.push_back(std::move(node));
  }

  void addFrame(const DocumentFrame& frame) {
    const QString type = frame.isNote() ? QStringLiteral("Note") : QStringLiteral("Frame");
    const QString text = toQt(frame.text.value_or(frame.title)).simplified();
    if (!hasAllWords({text, type}, m_words)) return;
    m_found.push_back(
        {.id = frame.id, .title = text.isEmpty() ? type : text.left(kMostTitleChars), .detail = type, .isFrame = true});
  }

  const PipelineDocument& m_document;
  const Analysis& m_analysis;
  const QStringList m_words;
  const std::vector<AttributeTerm> m_terms;
  const AttributeSearch m_attributes;
  std::map<std::string, QStringList> m_facts;
  std::vector<FoundNode> m_found;
  std::vector<FoundNode> m_foundByFacts;
};

}  // namespace

QStringList searchWords(const QString& query) { return plain(query).split(u' ', Qt::SkipEmptyParts); }

bool hasAllWords(const QStringList& texts, const QStringList& words) {
  return std::ranges::all_of(words, [&](const QString& word) { return hasWord(texts, word); });
}

std::vector<FoundNode> findNodes(const PipelineDocument& document, const Analysis& analysis, const QString& query,
                                 const MeasuredOps* times) {
  return NodeSearch(document, analysis, searchQuery(query), times).run();
}

}  // namespace fuseline::ui
