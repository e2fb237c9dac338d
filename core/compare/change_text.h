// What a change of a document says in words and signs, the same on the command line and in the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"

#include <string>

namespace fuseline {

/// '+' added, '-' removed, '~' changed, '>' renamed.
char markOf(DocumentChange::Kind kind);

/// "eps 1e-05 -> 1e-06"; of what is there on one side only, its value: of whole blocks the beginning.
std::string fieldText(const FieldChange& field, DocumentChange::Kind kind);

/// What changed of it, without what it is: "eps 1e-05 -> 1e-06, bias false -> true", "-> first".
std::string fieldsText(const DocumentChange& change);

/// "~ fc1  bias false -> true", "> norm  -> first".
std::string changeText(const DocumentChange& change);

}  // namespace fuseline
