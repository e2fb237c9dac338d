// Repairs of many problems as one edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"

#include <cstddef>
#include <vector>

namespace fuseline {

/// Whether an error has exactly one repair, so that nobody has to choose.
bool hasOnlyRepair(const Diagnostic& problem);
std::size_t numOnlyRepairs(const std::vector<Diagnostic>& problems);

/// Errors that fixAll() removes from the document.
std::size_t numErrorsFixed(const PipelineDocument& document, const std::vector<Diagnostic>& problems);

/// Applies the only repairs of these errors, and of those that are found once they are applied. A repair that an
/// earlier one made impossible is left out.
Edit fixAll(const PipelineDocument& document, const std::vector<Diagnostic>& problems);

}  // namespace fuseline
