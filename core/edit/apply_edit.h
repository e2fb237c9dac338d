// The entrance to edits: applies one to a document.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

namespace fuseline {

/// Changes the document and returns the edit that undoes it, byte for byte.
/// Errors: a sentence why the edit does not fit; the document is as it was.
Result<Edit> applyEdit(PipelineDocument& document, const Edit& edit);

}  // namespace fuseline
