// Connectivity: the wires of a pipeline or block resolved to ops and ports, and a topological order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/lowering/diagnostic_sink.h"
#include "core/ops/operation.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace fuseline {

/// A tensor by its place in the document: an input, or a port of an op. A port of an op of unknown type is -1.
struct Source {
  enum class Kind { None, Broken, Input, Op } kind = Kind::None;
  std::size_t index = 0;
  int port = 0;
};

class Connectivity {
 public:
  /// `what`: "pipeline" or "block". `operations`: the type of every op, nullptr if its ports are not known. Reports
  /// wrong ids, wires and outputs, and cycles.
  Connectivity(const DocumentBlock& block, std::string_view what, std::vector<OperationPointer> operations,
               DiagnosticSink& sink);

  /// A wire, an output or an id is wrong, or there is a cycle.
  bool hasProblems() const { return m_hasProblems; }
  /// Sources of an op's inputs, by port. Broken: the wire is invalid and has been reported.
  const std::vector<Source>& sources(std::size_t op) const { return m_sources[op]; }
  const Source& outputSource(std::size_t output) const { return m_outputSources[output]; }
  bool isInputUsed(std::size_t input) const { return m_isInputUsed[input]; }
  bool isMainOutputUsed(std::size_t op) const { return m_isMainOutputUsed[op]; }
  /// An op whose id is missing or another op's takes no part.
  bool isNamed(std::size_t op) const { return m_isNamed[op]; }
  bool isInputNamed(std::size_t input) const { return m_isInputNamed[input]; }
  /// Ops in topological order; ties in document order. Excludes ops on or downstream of a cycle.
  const std::vector<std::size_t>& order() const { return m_order; }

 private:
  struct NodeRef {
    Source::Kind kind = Source::Kind::None;
    std::size_t index = 0;
    bool isOutput = false;
  };

  struct Producer {
    std::size_t op = 0;
    std::size_t wire = 0;
  };

  void collectIds();
  void takeId(const std::string& id, NodeRef node, const std::string& pointer, bool isReported);
  void resolveWires();
  void resolveWire(std::size_t wire);
  void resolveOutputs();
  Source resolveSource(const Endpoint& from, const Spot& spot, const std::vector<Repair>& removal,
                       const std::function<Edit(Endpoint)>& replace);
  std::optional<int> resolvePort(const DocumentOp& op, const std::string& port, const std::vector<Port>& ports,
                                 std::string_view kind, const Spot& spot, const std::vector<Repair>& removal,
                                 const std::function<Edit(Endpoint)>& replace);
  void reportUnknownNode(const Endpoint& endpoint, std::string_view expected, const Spot& spot,
                         const std::vector<Repair>& removal, const std::function<Edit(Endpoint)>& replace);
  void markUsed(const Source& source);
  void sortOps();
  void reportCycles(const std::vector<bool>& isSorted);
  void reportCycle(const std::vector<std::size_t>& cycle);
  std::vector<Repair> idRepairs(const std::string& id, const NodeRef& node);

  const DocumentBlock& m_block;
  std::string_view m_what;
  std::vector<OperationPointer> m_operations;
  DiagnosticSink& m_sink;
  std::unordered_map<std::string_view, NodeRef> m_nodes;
  std::vector<std::string> m_readableIds;
  std::vector<bool> m_isNamed;
  std::vector<bool> m_isInputNamed;
  std::vector<std::vector<Source>> m_sources;
  std::vector<std::vector<int>> m_wireOfPort;
  std::vector<std::vector<Producer>> m_producers;
  int m_numIdRepairs = 0;
  bool m_hasProblems = false;
  std::vector<Source> m_outputSources;
  std::vector<bool> m_isInputUsed;
  std::vector<bool> m_isMainOutputUsed;
  std::vector<std::size_t> m_order;
};

}  // namespace fuseline
