// The place of a pasted copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <string_view>

namespace fuseline {

/// Offset for a copy: whole rows down from the original, to the first place where it covers no node and no frame of the
/// document. None where the original was cut. text: of copyFragment().
Position offsetOfCopy(const PipelineDocument& document, std::string_view text);

}  // namespace fuseline
