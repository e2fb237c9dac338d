// Reverts single changes: edits that restore parts of another document. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/document/document.h"
#include "core/support/result.h"

#include <span>

namespace fuseline {

/// An edit of `next` that reverts this change to the state in `base`. `changes`: all changes between both documents;
/// `change` is one of them. A restored node gets back its place, its wires with existing other ends, and the outputs
/// that read it; a removed node's consumers read again their source in the base. Errors: the document cannot be edited,
/// or another change must be reverted first.
Result<Edit> takeBack(const PipelineDocument& base, const PipelineDocument& next,
                      std::span<const DocumentChange> changes, const DocumentChange& change);

}  // namespace fuseline
