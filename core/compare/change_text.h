// Texts and signs of a document's change, the same on the command line and in the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"

#include <string>

namespace fuseline {

/// '+' added, '-' removed, '~' changed, '>' renamed.
char markOf(DocumentChange::Kind kind);

/// "eps 1e-05 -> 1e-06"; for a value on one side only, the value; for a whole block, its beginning.
std::string fieldText(const FieldChange& field, DocumentChange::Kind kind);

/// Changed fields, without the subject: "eps 1e-05 -> 1e-06, bias false -> true", "-> first".
std::string fieldsText(const DocumentChange& change);

/// "~ fc1  bias false -> true", "> norm  -> first".
std::string changeText(const DocumentChange& change);

}  // namespace fuseline
