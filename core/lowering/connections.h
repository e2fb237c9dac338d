// How ops are wired together: which wires are legal, and how an op goes with its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <string_view>

namespace fuseline {

/// Removes an op together with its wires, outputs and position; `reconnect` joins its main input to its consumers.
Edit removeOpWithWires(const PipelineDocument& document, std::string_view id, bool reconnect = false);
/// The same in a block of the document, as an edit of that block. An output of a block is a port of its instances: it
/// stays where it can be read from elsewhere, and goes where it cannot.
Edit removeOpWithWires(const PipelineDocument& document, const DocumentBlock& section, std::string_view id,
                       bool reconnect);

/// Would this wire be legal? Refuses with a sentence: unknown port, taken input, a cycle (named).
Verdict canConnect(const PipelineDocument& document, const Wire& wire);

}  // namespace fuseline
