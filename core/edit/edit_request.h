// Edits as they are requested in text: "insert RMSNorm before fc1". Pure functions from a document to undoable edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

enum class EditVerb {
  Insert,
  Replace,
  Delete,
  Connect,
  Disconnect,
  SetAttribute,
  SetSymbol,
  Rename,
  Repeat,
  Bypass,
  Use,
  FoldRepeats
};

/// A verb as users write it, with the form of its argument and a sentence for its help.
struct EditVerbInfo {
  EditVerb verb;
  std::string_view name;      // "set-attribute"
  std::string_view argument;  // "OP.NAME=VALUE"; empty: it takes none
  std::string_view help;
};
std::span<const EditVerbInfo> editVerbs();

enum class Side { Unknown, Before, After };

struct EditRequest {
  EditVerb verb = EditVerb::Insert;
  std::string argument;
  Side side = Side::Unknown;  // of an insertion, with the op
  std::string anchor;
};
/// "insert RMSNorm before fc1".
std::string toString(const EditRequest& request);

/// The edit that does this. Errors (InvalidInput or Usage): the argument has another form, a name is not known (with
/// the nearest known one), a wire would be illegal.
Result<Edit> editFor(const PipelineDocument& document, const EditRequest& request);

struct AppliedEdit {
  Edit edit;
  Edit inverse;
};
struct EditedDocument {
  PipelineDocument document;
  std::vector<AppliedEdit> edits;  // in the order of the requests
};
/// Applies the requests in order, each to the result of the one before. Errors: those of editFor(), prefixed by the
/// request.
Result<EditedDocument> editedDocument(PipelineDocument document, std::span<const EditRequest> requests);

}  // namespace fuseline
