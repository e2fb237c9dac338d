// Symbols may refer to symbols: they are evaluated depth first, without recursion, because files can be hostile.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/symbol_table.h"

#include "core/document/json_text.h"
#include "core/support/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

Spot symbolSpot(const std::string& name) { return {.pointer = "/symbols/" + escapedPointer(name)}; }

std::vector<std::string> namesIn(const Json& value) {
  return value.is_string() ? symbolNames(value.get_ref<const std::string&>()) : std::vector<std::string>{};
}

std::string_view problemCode(ExpressionProblem::Kind kind) {
  switch (kind) {
    case ExpressionProblem::Kind::UnknownSymbol: return "unknown-symbol";
    case ExpressionProblem::Kind::Overflow: return "integer-overflow";
    default: return "bad-expression";
  }
}

}  // namespace

SymbolTable::SymbolTable(const PipelineDocument& document, const LoweringOptions& options, DiagnosticSink& sink)
    : m_sink(sink) {
  const auto& members = document.symbols().get_ref<const Json::object_t&>();
  for (const auto& [name, value] : members) {
    m_written.emplace(name, &value);
    m_names.push_back(name);
  }
  applyOverrides(options);
  for (const auto& [name, value] : members) evaluateFrom(name);
}

void SymbolTable::applyOverrides(const LoweringOptions& options) {
  for (const auto& [name, value] : options.symbols) {
    if (m_written.contains(name))
      m_values.emplace(name, value);
    else
      m_sink.error("unknown-symbol", {.pointer = "/symbols"},
                   fmt::format("The pipeline has no symbol {} to set to {}{}", name, value,
                               didYouMean(m_sink.suggest(name, m_names))));
  }
}

void SymbolTable::evaluateFrom(const std::string& first) {
  struct Visit {
    std::string name;
    std::vector<std::string> needs;
    std::size_t next = 0;
  };
  const auto isDone = [&](const std::string& name) {
    return m_values.contains(name) || m_failed.contains(name) || !m_written.contains(name);
  };
  if (isDone(first)) return;
  std::vector<Visit> open = {{first, namesIn(*m_written.at(first))}};
  std::unordered_set<std::string> onPath = {first};
  while (!open.empty()) {
    Visit& visit = open.back();
    if (visit.next == visit.needs.size()) {
      evaluateOne(visit.name, *m_written.at(visit.name));
      onPath.erase(visit.name);
      open.pop_back();
      continue;
    }
    const std::string need = visit.needs[visit.next++];
    if (onPath.contains(need)) {
      if (m_failed.contains(need)) continue;  // the cycle is known
      std::vector<std::string> path;
      for (const Visit& step : open) path.push_back(step.name);
      reportCycle(path, need);
    } else if (!isDone(need)) {
      open.push_back({need, namesIn(*m_written.at(need))});
      onPath.insert(need);
    }
  }
}

void SymbolTable::reportCycle(const std::vector<std::string>& path, const std::string& name) {
  constexpr std::ptrdiff_t kMostNamed = 16;
  const auto begin = std::ranges::find(path, name);
  m_failed.insert(begin, path.end());
  const auto numLeft = std::max<std::ptrdiff_t>(path.end() - begin - kMostNamed, 0);
  m_sink.error("symbol-cycle", symbolSpot(name),
               fmt::format("Symbol {} refers to itself: {}{} -> {}. Set one of them to a number.", name,
                           fmt::join(begin, path.end() - numLeft, " -> "),
                           numLeft > 0 ? fmt::format(" -> {} more", numLeft) : std::string(), name));
}

void SymbolTable::evaluateOne(const std::string& name, const Json& value) {
  if (m_failed.contains(name)) return;
  const auto replace = [&](Json newValue) -> Edit { return SetSymbol{name, std::move(newValue)}; };
  if (const auto number = integer(value, "Symbol " + name, symbolSpot(name), replace))
    m_values.emplace(name, *number);
  else
    m_failed.insert(name);
}

std::optional<std::int64_t> SymbolTable::value(const std::string& name) const {
  const auto found = m_values.find(name);
  return found == m_values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> SymbolTable::integer(const Json& value, const std::string& what, const Spot& spot,
                                                 const std::function<Edit(Json)>& replace) const {
  if (value.is_string()) return expression(value.get_ref<const std::string&>(), what, spot, replace);
  if (value.is_number_float()) return real(value.get<double>(), what, spot, replace);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    m_sink.error("integer-overflow", spot,
                 fmt::format("{} is {}, which does not fit into 64 bits.", what, inlineText(value)));
    return std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  m_sink.error(
      "wrong-type", spot,
      fmt::format("{} is {}; expected an integer, a symbol or an expression.", what, shortened(inlineText(value))));
  return std::nullopt;
}

std::optional<std::int64_t> SymbolTable::real(double value, const std::string& what, const Spot& spot,
                                              const std::function<Edit(Json)>& replace) const {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (std::abs(value) >= kTwoTo63) {
    m_sink.error("integer-overflow", spot,
                 fmt::format("{} is {}, which does not fit into 64 bits.", what, inlineText(Json(value))));
    return std::nullopt;
  }
  Diagnostic& diagnostic =
      m_sink.error("wrong-type", spot, fmt::format("{} is {}; expected an integer.", what, inlineText(Json(value))));
  const auto whole = static_cast<std::int64_t>(std::llround(value));
  if (static_cast<double>(whole) == value)
    diagnostic.repairs.push_back({fmt::format("Write {}", whole), replace(Json(whole))});
  return std::nullopt;
}

std::optional<std::int64_t> SymbolTable::expression(const std::string& text, const std::string& what, const Spot& spot,
                                                    const std::function<Edit(Json)>& replace) const {
  bool needsFailed = false;
  const ExpressionValue value = evaluate(text, [&](const std::string& name) -> std::optional<std::int64_t> {
    needsFailed = needsFailed || m_failed.contains(name);
    const auto found = m_values.find(name);
    if (found != m_values.end()) return found->second;
    return needsFailed ? std::optional<std::int64_t>(1) : std::nullopt;
  });
  if (needsFailed) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto& problem = std::get<ExpressionProblem>(value);
  const bool isUnknown = problem.kind == ExpressionProblem::Kind::UnknownSymbol;
  const std::string near = isUnknown ? m_sink.suggest(problem.symbol, m_names) : std::string();
  Diagnostic& diagnostic = m_sink.error(std::string(problemCode(problem.kind)), spot,
                                        fmt::format("{} is \"{}\"; at character {}: {}{}", what, shortened(text),
                                                    problem.column, problem.message, didYouMean(near)));
  if (!near.empty())
    diagnostic.repairs.push_back({fmt::format("Replace {} with {}", problem.symbol, near),
                                  replace(Json(replaceSymbol(text, problem.symbol, near)))});
  return std::nullopt;
}

std::string SymbolTable::withValues(std::string_view text) const {
  const auto isPart = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  std::string result;
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    const std::size_t begin = i++;
    if (isPart(text[begin]))
      while (i < text.size() && isPart(text[i])) ++i;
    const std::string word(text.substr(begin, i - begin));
    const auto found = depth > 0 ? m_values.find(word) : m_values.end();
    result += found == m_values.end() ? word : fmt::format("{}", found->second);
  }
  return result;
}

std::string SymbolTable::withExpressions(std::string_view text) const {
  const SymbolLookup lookup = [this](const std::string& name) { return value(name); };
  std::string result;
  for (std::size_t begin = text.find('{'); begin != std::string_view::npos; begin = text.find('{')) {
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    const std::size_t end = text.find_first_of("{}", 1);
    const bool isClosed = end != std::string_view::npos && text[end] == '}';
    const std::string_view inner = isClosed ? text.substr(1, end - 1) : "";
    const ExpressionValue extent = evaluate(inner, lookup);
    const bool isMeant = !symbolNames(inner).empty() && std::holds_alternative<std::int64_t>(extent);
    result += isMeant ? fmt::format("{}", std::get<std::int64_t>(extent)) : "{";
    text.remove_prefix(isMeant ? end + 1 : 1);
  }
  return result + std::string(text);
}

}  // namespace fuseline
