// Takes single changes back: edits that put into a document what another one says. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/document/document.h"
#include "core/support/result.h"

#include <span>

namespace fuseline {

/// An edit of `next` after which it says of this change what `base` says. `changes`: all of both documents; it is one
/// of them. A node that is put back gets its place, its wires whose other ends are there, and the outputs that read it;
/// one that is removed leaves to its readers what they read in the base. Errors: a sentence: it cannot be edited, or
/// something else must be taken back first.
Result<Edit> takeBack(const PipelineDocument& base, const PipelineDocument& next,
                      std::span<const DocumentChange> changes, const DocumentChange& change);

}  // namespace fuseline
