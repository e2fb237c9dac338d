// EditScript: collects edits that are valid one after the other, and the steps that composed edits share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/edit/links.h"
#include "core/edit/view_grid.h"
#include "core/support/result.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

class EditScript {
 public:
  /// The document outlives the script.
  explicit EditScript(const PipelineDocument& document) : m_original(&document) {}
  explicit EditScript(PipelineDocument&& document) : m_scratch(std::move(document)) {}
  EditScript(const EditScript&) = delete;
  EditScript& operator=(const EditScript&) = delete;

  /// After the edits so far: another object as soon as there is one.
  const PipelineDocument& document() const;

  /// An edit that is refused stays in the group, so that the user sees why.
  void add(Edit edit) { m_edits.push_back(std::move(edit)); }
  /// Error of the first refused edit.
  const std::optional<Error>& refusal() const;
  Edit finish(std::string label) &&;

 private:
  void tryEdits() const;

  const PipelineDocument* m_original = nullptr;
  std::vector<Edit> m_edits;
  // Made when somebody asks: a copy of a large document takes long, and many scripts are of one edit.
  mutable std::optional<PipelineDocument> m_scratch;
  mutable std::size_t m_numTried = 0;
  mutable std::optional<Error> m_refusal;
};

std::optional<Position> positionOf(const DocumentBlock& block, const std::string& id);
/// Those that read this port.
std::vector<Link> readersOf(const PipelineDocument& document, const Endpoint& from);
/// "Paste 2 nodes"
std::string countLabel(const char* verb, std::size_t count);

void addLink(EditScript& script, const Endpoint& from, const Endpoint& to);
void removeLink(EditScript& script, const Link& link);

/// Makes room right of a node: all that stand there in its rows move on by this width, but not those in `except`,
/// which are to come there. Returns where the room begins; nothing where the node has no place of its own.
std::optional<Position> makeRoom(EditScript& script, const std::string& after, int widthPx = kNodePitchPx,
                                 const std::set<std::string>& except = {});

}  // namespace fuseline
