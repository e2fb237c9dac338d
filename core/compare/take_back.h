// Reverts single changes: edits that restore the state of another document. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/document/document.h"
#include "core/support/result.h"

#include <span>

namespace fuseline {

/// An edit of `next` that reverts this change to `base`. `changes`: all changes of both documents, including this one.
/// A restored node gets its position, its outputs, and its wires whose other ends exist; consumers of a removed node
/// get their source in the base. Errors: the change cannot be reverted, or another change must be reverted first.
Result<Edit> takeBack(const PipelineDocument& base, const PipelineDocument& next,
                      std::span<const DocumentChange> changes, const DocumentChange& change);

}  // namespace fuseline
