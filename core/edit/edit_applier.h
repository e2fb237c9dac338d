// Applies one edit to a document and builds its exact inverse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/edit/node_ids.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// Lives for one applyEdit(). Every overload changes the document and returns the inverse, or returns an
/// error and changes nothing.
class EditApplier {
 public:
  /// Ops, wires and so on are those of `block`, which is a block of the document; nullptr: of its pipeline.
  explicit EditApplier(PipelineDocument& document, DocumentBlock* block = nullptr)
      : m_document(document), m_block(block ? *block : document.m_pipeline), m_ids(m_block) {}

  Result<Edit> apply(const Edit& edit);

  /// Calls change(block) with the pipeline and every block of the document.
  template <class Change>
  static void changeBlocks(PipelineDocument& document, const Change& change) {
    change(document.m_pipeline);
    for (auto& [name, block] : document.m_blocks) change(block);
  }

  /// See blockSection().
  static PipelineDocument section(const PipelineDocument& document, DocumentBlock block);

  Result<Edit> operator()(const AddOp& edit);
  Result<Edit> operator()(const RemoveOp& edit);
  Result<Edit> operator()(const RenameOp& edit);
  Result<Edit> operator()(const SetAttribute& edit);
  Result<Edit> operator()(const AddWire& edit);
  Result<Edit> operator()(const RemoveWire& edit);
  Result<Edit> operator()(const SetBypassed& edit);
  Result<Edit> operator()(const AddInput& edit);
  Result<Edit> operator()(const RemoveInput& edit);
  Result<Edit> operator()(const ReplaceInput& edit);
  Result<Edit> operator()(const AddOutput& edit);
  Result<Edit> operator()(const RemoveOutput& edit);
  Result<Edit> operator()(const ReplaceOutput& edit);
  Result<Edit> operator()(const MoveNode& edit);
  Result<Edit> operator()(const AddFrame& edit);
  Result<Edit> operator()(const RemoveFrame& edit);
  Result<Edit> operator()(const ReplaceFrame& edit);
  Result<Edit> operator()(const SetSymbol& edit);
  Result<Edit> operator()(const SetRecipe& edit);
  Result<Edit> operator()(const SetFusion& edit);
  Result<Edit> operator()(const AddBlock& edit);
  Result<Edit> operator()(const RemoveBlock& edit);
  Result<Edit> operator()(const ReplaceBlock& edit);
  Result<Edit> operator()(const EditInBlock& edit);
  Result<Edit> operator()(const EditGroup& edit);

 private:
  template <class Item>
  Result<std::size_t> insertNode(std::vector<Item>& list, const Item& item, int index);
  template <class Item>
  std::optional<std::size_t> locate(const std::vector<Item>& list, std::string_view id, int index) const;

  bool isInBlock() const;
  std::string userOf(std::string_view name) const;
  Error noSuchBlock(std::string_view name) const;
  Error noSuchFrame(std::string_view id) const;
  Error noSuch(std::string_view kind, std::string_view id) const;

  PipelineDocument& m_document;
  DocumentBlock& m_block;
  NodeIds m_ids;
};

}  // namespace fuseline
