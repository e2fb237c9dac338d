// The backends of this build: the only list of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline {

/// Devices: "cpu", "cuda:N" through the CUDA module, and "reference". A device that cannot run here is listed with
/// the reason. The CUDA module is loaded when it is first asked for, never at start.
std::unique_ptr<BackendRegistry> makeBackendRegistry();

}  // namespace fuseline
