// The blocks of a document: their ports, their nesting, and whether they can be expanded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/lowering/diagnostic_sink.h"
#include "core/ops/operation.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fuseline {

class BlockTable {
 public:
  static constexpr int kMaxNesting = 64;
  static constexpr std::size_t kMaxOps = 1'000'000;

  struct Block {
    std::string name;
    const DocumentBlock* block = nullptr;
    FusibleOperation operation;
    /// Has it the ports that every op has?
    bool hasPorts = false;
    /// Whether it can be expanded: not if it, or a block inside, contains itself, is nested too deep or is too large.
    bool isExpandable = true;
    /// Number of ops, including instances and their contents.
    std::size_t numOps = 0;
    /// The first place in the pipeline where it is used.
    BlockScope firstUse;
  };

  /// Reports cycles, and blocks that are nested too deep or too large.
  BlockTable(const PipelineDocument& document, DiagnosticSink& sink);

  /// nullptr when there is none.
  const Block* find(std::string_view name) const;
  /// The block of an op; nullptr for every other op.
  const Block* blockOf(const DocumentOp& op) const;
  const std::vector<Block>& blocks() const { return m_blocks; }
  /// As ops name them: "block:Layer".
  std::vector<std::string> instanceNames() const;

 private:
  // An instance inside a block.
  struct Part {
    std::size_t op = 0;
    std::size_t block = 0;
  };
  struct Visit {
    std::size_t block = 0;
    std::size_t next = 0;  // in m_parts
  };
  enum class State { New, Open, Done };

  std::vector<Part> partsOf(const DocumentBlock& block) const;
  void visit(std::size_t first);
  void finish(std::size_t block);
  void reportCycle(const std::vector<Visit>& open, const Part& last);
  void refuse(std::size_t block, std::string code, const std::string& message);
  void findFirstUses(const PipelineDocument& document);

  DiagnosticSink& m_sink;
  std::vector<Block> m_blocks;
  std::unordered_map<std::string_view, std::size_t> m_byName;
  std::vector<std::vector<Part>> m_parts;
  std::vector<State> m_states;
  std::vector<std::size_t> m_places;  // in the walk, while open
  std::vector<int> m_depths;
};

}  // namespace fuseline
