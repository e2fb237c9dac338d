// Places and suggestions of diagnostics.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/diagnostic_sink.h"

#include "core/document/json_text.h"
#include "core/support/text.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kMaxComparisons = 1'000'000;

}  // namespace

Diagnostic& DiagnosticSink::report(Severity severity, std::string code, Spot spot, std::string message) {
  if (!m_scope.block.empty()) moveInside(spot, message);
  m_blocks.push_back(m_scope.block);
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

void DiagnosticSink::moveInside(Spot& spot, std::string& message) const {
  constexpr std::string_view kPipeline = "/pipeline";
  if (spot.pointer.starts_with(kPipeline))
    spot.pointer = "/blocks/" + escapedPointer(m_scope.block) + spot.pointer.substr(kPipeline.size());
  spot.node = m_scope.node;
  spot.port.clear();
  message = m_scope.path.empty() ? fmt::format("In block {}: {}", m_scope.block, message)
                                 : fmt::format("In {} (block {}): {}", m_scope.path, m_scope.block, message);
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
  for (std::size_t i = 0; i < m_diagnostics.size(); ++i)
    for (Repair& repair : m_diagnostics[i].repairs)
      if (!m_blocks[i].empty()) repair.edit = EditInBlock{m_blocks[i], {std::move(repair.edit)}};
  std::ranges::stable_sort(m_diagnostics, {}, [](const Diagnostic& d) { return std::tuple(d.line, d.column); });
  return std::move(m_diagnostics);
}

}  // namespace fuseline
