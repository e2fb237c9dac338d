// Collects the diagnostics of one lowering and gives them their line and column.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/file_format.h"

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

/// The inside of a block, as it is reached through an instance.
struct BlockScope {
  std::string block;  // its name; empty: the pipeline
  std::string path;   // "layer1.attention"; empty when the block has no instance
  std::string node;   // the instance in the pipeline: "layer1"
};

class DiagnosticSink {
 public:
  explicit DiagnosticSink(const SourceMap* sourceMap) : m_sourceMap(sourceMap) {}

  /// Inside a block "/pipeline" at the beginning of a pointer stands for the block, the sentence begins with the
  /// instance, and repairs are edits of the block. The reference is good until the next report.
  Diagnostic& report(Severity severity, std::string code, Spot spot, std::string message);
  Diagnostic& error(std::string code, Spot spot, std::string message) {
    return report(Severity::Error, std::move(code), std::move(spot), std::move(message));
  }
  std::size_t numReported() const { return m_diagnostics.size(); }
  /// Removes the repairs of the diagnostics with the numbers [first, last).
  void withdrawRepairs(std::size_t first, std::size_t last);
  void withdrawRepairs(std::size_t first) { withdrawRepairs(first, numReported()); }
  /// nearest(), but a file with very many wrong names gets suggestions only for the first of them: comparing every
  /// wrong name with every known one is quadratic.
  std::string suggest(std::string_view name, const std::vector<std::string>& candidates);

  /// In the order of the text, where it is known.
  std::vector<Diagnostic> finish() &&;

  /// Returns the scope until now.
  BlockScope enter(BlockScope scope) { return std::exchange(m_scope, std::move(scope)); }

 private:
  void moveInside(Spot& spot, std::string& message) const;

  const SourceMap* m_sourceMap;
  std::vector<Diagnostic> m_diagnostics;
  std::vector<std::string> m_blocks;  // by diagnostic
  BlockScope m_scope;
  std::size_t m_numCompared = 0;
};

/// Reports are about the inside of a block while this lives.
class InsideBlock {
 public:
  InsideBlock(DiagnosticSink& sink, BlockScope scope) : m_sink(sink), m_outer(sink.enter(std::move(scope))) {}
  ~InsideBlock() { m_sink.enter(std::move(m_outer)); }
  InsideBlock(const InsideBlock&) = delete;
  InsideBlock& operator=(const InsideBlock&) = delete;

 private:
  DiagnosticSink& m_sink;
  BlockScope m_outer;
};

}  // namespace fuseline
