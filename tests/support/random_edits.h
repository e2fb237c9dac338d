// Random edits of documents, right and wrong ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <string>

namespace fuseline::testing {

/// One of resources/examples.
PipelineDocument example(const std::string& name);
/// The sentence with which the document refuses the edit, or "accepted".
std::string refusal(PipelineDocument document, const Edit& edit);

// Inside of a property only.

/// An example, a document in which much is wrong, or an empty one.
PipelineDocument randomStart();
/// Over a small alphabet of names, so that they meet. Many are refused.
Edit randomEditOrGroup(const PipelineDocument& document);

}  // namespace fuseline::testing
