// Memory of the CPU backend: anonymous pages, huge if the kernel allows, touched before they are returned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline::cpu {

/// Zero-filled and aligned to 64 bytes at least. A first write into fresh pages costs about ten times a write into
/// touched ones, so it happens here. Errors: RunFailed when the system has not enough memory.
Result<std::unique_ptr<DeviceMemory>> allocateCpuMemory(std::size_t sizeBytes);

}  // namespace fuseline::cpu
