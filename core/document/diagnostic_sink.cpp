// Places and suggestions of diagnostics.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/diagnostic_sink.h"

#include "core/support/text.h"

#include <algorithm>
#include <tuple>

namespace fuseline {

namespace {

constexpr std::size_t kMaxComparisons = 1'000'000;

}  // namespace

Diagnostic& DiagnosticSink::report(Severity severity, std::string code, Spot spot, std::string message) {
  const SourceMap::Place place = m_sourceMap ? m_sourceMap->find(spot.pointer) : SourceMap::Place{};
  m_diagnostics.push_back({.severity = severity,
                           .code = std::move(code),
                           .node = std::move(spot.node),
                           .port = std::move(spot.port),
                           .pointer = std::move(spot.pointer),
                           .line = place.line,
                           .column = place.column,
                           .message = std::move(message)});
  return m_diagnostics.back();
}

void DiagnosticSink::withdrawRepairs(std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) m_diagnostics[i].repairs.clear();
}

std::string DiagnosticSink::suggest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 100;
  if (name.size() > kLongestName || m_numCompared + candidates.size() > kMaxComparisons) return {};
  m_numCompared += candidates.size();
  return nearest(name, candidates);
}

std::vector<Diagnostic> DiagnosticSink::finish() && {
  std::ranges::stable_sort(m_diagnostics, {}, [](const Diagnostic& d) { return std::tuple(d.line, d.column); });
  return std::move(m_diagnostics);
}

std::string didYouMean(const std::string& name) { return name.empty() ? "." : "; did you mean " + name + "?"; }

}  // namespace fuseline
