// DocumentDifference: the differences of two documents, by id.
// How lists are ordered in a file says nothing, but for the ports of a block; the view is left out unless asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// A member of two JSON objects. Values as a file writes them; empty: it is not there.
struct FieldChange {
  std::string name;
  std::string base;
  std::string next;
  bool operator==(const FieldChange&) const = default;
};

/// Changed members, in the base's order, then those that only `next` has. Two values that are not objects are one field
/// without a name; an object beside something else, too.
std::vector<FieldChange> changedFields(const Json& base, const Json& next);

struct DocumentChange {
  enum class Section { Symbols, Inputs, Ops, Wires, Outputs, Blocks, Recipe, Fusion, View, File };
  enum class Kind { Added, Removed, Changed, Renamed };

  Section section = Section::File;
  /// Where it is inside of a block; empty: in the pipeline, or beside it.
  std::string block;
  Kind kind = Kind::Changed;
  /// An op, a symbol ...; of a wire where it ends. Empty: the section as a whole.
  std::string id;
  std::string newId;  // Renamed only
  /// For an added or removed item, all fields in the file.
  std::vector<FieldChange> fields;
  bool operator==(const DocumentChange&) const = default;
};

std::string_view sectionName(DocumentChange::Section section);
std::string_view kindName(DocumentChange::Kind kind);
/// "op fc1", "wire to fc1.x", "symbol M", "op fc1 in block Layer".
std::string placeOf(const DocumentChange& change);

/// Base id to id of the ops and inputs that were renamed, of the pipeline, or of a block.
std::map<std::string, std::string> renamedIds(std::span<const DocumentChange> changes, std::string_view block = {});

struct DifferenceOptions {
  bool withView = false;
};

/// Empty: both documents are equivalent. An op or input with only another id was renamed: its consumers did not
/// change. Duplicate ids are distinguished by their order.
std::vector<DocumentChange> documentDifference(const PipelineDocument& base, const PipelineDocument& next,
                                               const DifferenceOptions& options = {});

}  // namespace fuseline
