// CudaBackend: runs plans on an NVIDIA GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/support/result.h"

#include <memory>

namespace fuseline::cuda {

/// device: the runtime's number. Errors (NoDevice): the device takes no context, with the runtime's words.
Result<std::shared_ptr<Backend>> makeCudaBackend(int device, const DeviceInfo& info);

}  // namespace fuseline::cuda
