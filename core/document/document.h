// PipelineDocument: the saved state. It keeps the user's input, valid or not; lowering finds the problems.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fuseline {

class PipelineDocument {
 public:
  const DocumentBlock& pipeline() const { return m_pipeline; }
  const std::vector<DocumentInput>& inputs() const { return m_pipeline.inputs; }
  const std::vector<DocumentOp>& ops() const { return m_pipeline.ops; }
  const std::vector<Wire>& wires() const { return m_pipeline.wires; }
  const std::vector<DocumentOutput>& outputs() const { return m_pipeline.outputs; }
  /// Selections of ops that were saved under a name, in file order.
  const std::vector<std::pair<std::string, DocumentBlock>>& blocks() const { return m_blocks; }
  /// Name to integer or expression, in file order.
  const Json& symbols() const { return m_symbols; }
  const Json& recipe() const { return m_recipe; }
  /// {"rules": "all", "without": [...]}, or null.
  const Json& fusion() const { return m_fusion; }
  const std::vector<std::pair<std::string, Position>>& positions() const { return m_pipeline.positions; }

  /// Frames of the pipeline, in file order. A frame with the id of an earlier one is never drawn.
  const std::vector<DocumentFrame>& frames() const { return m_pipeline.frames; }

  const DocumentOp* findOp(std::string_view id) const;
  const DocumentInput* findInput(std::string_view id) const;
  const DocumentOutput* findOutput(std::string_view id) const;
  const DocumentBlock* findBlock(std::string_view name) const;
  const DocumentFrame* findFrame(std::string_view id) const;
  bool idExists(std::string_view id) const;
  /// "fc", "fc2", "fc3" ...: the first that is free.
  std::string freeId(std::string_view stem) const;
  /// "frame", "frame2" ...: the first that no frame of the pipeline bears.
  std::string freeFrameId(std::string_view stem) const;
  /// A file of a newer major version: it can be looked at, not edited.
  bool isReadOnly() const { return m_isReadOnly; }

  bool operator==(const PipelineDocument&) const = default;

 private:
  friend class DocumentReader;
  friend class DocumentWriter;
  friend class EditApplier;

  DocumentBlock* mutableBlock(std::string_view name);

  DocumentBlock m_pipeline;
  std::vector<std::pair<std::string, DocumentBlock>> m_blocks;
  Json m_symbols = Json::object();
  Json m_recipe;
  Json m_fusion;
  // Unknown fields, by the object they stand in: "" (top), "formatVersion", "symbols", "blocks".
  std::map<std::string, Json> m_extra;
  int m_formatMinor = 0;
  bool m_isReadOnly = false;
};

/// Equal but for the view: where the nodes stand, and frames.
bool meansTheSame(const PipelineDocument& a, const PipelineDocument& b);

/// "fc", "fc2", "fc3" ...: the first that no input, op or output of the block bears.
std::string freeId(const DocumentBlock& block, std::string_view stem);
/// The first that is not in `taken`.
std::string freeId(const std::unordered_set<std::string>& taken, std::string_view stem);

/// Frames that have a place and are the first with their id, as findFrame() finds them; in the document's order.
std::vector<const DocumentFrame*> drawnFrames(const PipelineDocument& document);

}  // namespace fuseline
