// Changes of a document, as lines for people and as JSON for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/terminal.h"
#include "core/compare/document_difference.h"
#include "core/support/json.h"

#include <string>
#include <vector>

namespace fuseline::cli {

/// '+' good, '-' bad.
Style styleOf(char mark);

/// Changes under the headings of their sections, one line each. Empty: there is none.
std::string changesText(const std::vector<DocumentChange>& changes, bool hasColour);

Json changesJson(const std::vector<DocumentChange>& changes);
Json changesSchema();

}  // namespace fuseline::cli
