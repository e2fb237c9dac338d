// The inside of a block, as what shows a pipeline takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

namespace fuseline {

/// The section of a block by itself: its parts, exactly as they are, in place of the pipeline's, among the blocks and
/// symbols of the document. The recipe has no settings for single ops, which have other ids here.
PipelineDocument blockSection(const PipelineDocument& document, DocumentBlock block);

}  // namespace fuseline
