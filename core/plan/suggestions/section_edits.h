// SectionEdits: a change of the wires of a pipeline or a block, as one group of edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fuseline {

/// Looks up ops and wires in the section's former state.
class SectionEdits {
 public:
  explicit SectionEdits(const DocumentBlock& section);

  /// Nothing: the port is not connected.
  std::optional<Wire> wireTo(const Endpoint& to) const;
  /// Wires and outputs.
  std::ptrdiff_t numReaders(const Endpoint& from) const;

  void remove(const Wire& wire) { m_group.edits.emplace_back(RemoveWire{wire}); }
  void add(const Wire& wire) { m_group.edits.emplace_back(AddWire{wire}); }
  /// All that reads one port reads another instead.
  void readInstead(const Endpoint& from, const Endpoint& instead);
  /// The wire into `to` leads through another op first: into its input, and from its output.
  void lead(const Endpoint& to, const Endpoint& input, const Endpoint& output);
  /// Adds an op, and returns its id.
  std::string addOp(std::string_view stem, std::string operation, Json attributes);
  /// One more of the same op, with other values of these attributes.
  std::string addLike(const std::string& id, const Json& attributes = Json::object());

  void setAttribute(const std::string& id, std::string name, Json value) {
    m_group.edits.emplace_back(SetAttribute{id, std::move(name), std::move(value)});
  }
  /// Removes an op with the wires into it. Its readers must read something else.
  void removeOp(const std::string& id);

  EditGroup group(std::string label) &&;
  EditGroup group(std::string label) & { return std::move(*this).group(std::move(label)); }

 private:
  const DocumentBlock& m_section;
  std::unordered_set<std::string> m_ids;
  EditGroup m_group;
};

}  // namespace fuseline
