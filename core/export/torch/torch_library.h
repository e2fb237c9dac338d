// The modules of resources/torch/modules.py, which are compiled in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fuseline {

/// Definitions of the modules that a text makes or derives from.
std::string usedTorchModules(const std::string& text);

}  // namespace fuseline
