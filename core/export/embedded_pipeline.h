// The pipeline file within a file of another format, to be read back from there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace fuseline {

/// The pipeline file as lines of comments that begin with `prefix`, between two lines that name it.
std::string embedded(const PipelineDocument& document, std::string_view prefix);

/// The text of the pipeline file that stands in such comments. Errors: there is none, it is cut off, or there are two.
Result<std::string> embeddedText(std::string_view text);

}  // namespace fuseline
