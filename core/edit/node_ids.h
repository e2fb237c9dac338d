// The ids of the ops, inputs and outputs of a block while it is edited, and what names them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fuseline {

class NodeIds {
 public:
  /// The block outlives it, and tells of every change of its nodes by note().
  explicit NodeIds(DocumentBlock& block) : m_block(block) {}

  /// How many nodes bear the id.
  int count(const std::string& id);
  /// change: 1 for a new node of this id, -1 for one that is gone.
  void note(const std::string& id, int change);
  /// Is it a valid id that no node bears?
  Verdict canTake(const std::string& id);
  /// Only if nothing else bears either name, and the old name is one that may be taken.
  bool isUndoneByRenaming(const std::string& id, const std::string& newId);
  /// Does a wire or an output read or write this node?
  bool hasWires(std::string_view id) const;
  /// Lets wires, outputs and the position of a renamed node name its new id.
  void follow(const std::string& id, const std::string& newId);
  void followPosition(const std::string& id, const std::string& newId);

 private:
  /// Does a wire, an output or a position name this id, although no node may bear it?
  bool isNamed(std::string_view id) const;

  DocumentBlock& m_block;
  // Filled on first use, so that a group of many additions stays linear.
  std::optional<std::unordered_map<std::string, int>> m_counts;
};

}  // namespace fuseline
