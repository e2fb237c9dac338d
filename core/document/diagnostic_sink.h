// Collects the diagnostics of one lowering and gives them their line and column.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/graph/diagnostic.h"

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fuseline {

/// Where a problem is: JSON pointer, id of the op, input or output, port.
struct Spot {
  std::string pointer;
  std::string node;
  std::string port;
};

class DiagnosticSink {
 public:
  explicit DiagnosticSink(const SourceMap* sourceMap) : m_sourceMap(sourceMap) {}

  /// The reference is good until the next report.
  Diagnostic& report(Severity severity, std::string code, Spot spot, std::string message);
  Diagnostic& error(std::string code, Spot spot, std::string message) {
    return report(Severity::Error, std::move(code), std::move(spot), std::move(message));
  }
  std::size_t numReported() const { return m_diagnostics.size(); }
  /// Of the diagnostics with the numbers [first, last).
  void withdrawRepairs(std::size_t first, std::size_t last);
  void withdrawRepairs(std::size_t first) { withdrawRepairs(first, numReported()); }
  /// nearest(), but a file with very many wrong names gets suggestions only for the first of them: comparing every
  /// wrong name with every known one is quadratic.
  std::string suggest(std::string_view name, const std::vector<std::string>& candidates);

  /// In the order of the text, where it is known.
  std::vector<Diagnostic> finish() &&;

 private:
  const SourceMap* m_sourceMap;
  std::vector<Diagnostic> m_diagnostics;
  std::size_t m_numCompared = 0;
};

/// The end of a sentence: "; did you mean fc1?", or "." for an empty name.
std::string didYouMean(const std::string& name);

}  // namespace fuseline
