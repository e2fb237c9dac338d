// The place of a pasted copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <string_view>

namespace fuseline {

/// Offset for a copy that stands below its original: whole rows, to the first place where it covers no node and no
/// frame of the document. text: of copyFragment().
Position offsetOfCopy(const PipelineDocument& document, std::string_view text);

}  // namespace fuseline
