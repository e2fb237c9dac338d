// The limits of a GPU, measured now: what a timing is compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

namespace fuseline::cuda {

/// Of the device that is selected: copies between large pieces of its memory, and large products by `gemms`, which
/// launch on the stream. Throws DeviceFault. Errors: there is no library for products.
Result<DeviceRoofs> measureRoofs(int device, Stream stream, GemmLibrary& gemms);

}  // namespace fuseline::cuda
