// The pipeline file within the comments of a script, to be read back from there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace fuseline {

/// The pipeline file as lines of comments that begin with `prefix`, between two lines that name it.
std::string embedded(const PipelineDocument& document, std::string_view prefix);

/// Is it a script with such comments, whole or not? A pipeline file is none.
bool holdsEmbedded(std::string_view text);
/// The text of the pipeline file that stands in such comments. Errors: there is none, it is cut off, or there are two.
Result<std::string> embeddedText(std::string_view text);

}  // namespace fuseline
