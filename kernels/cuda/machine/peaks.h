// The peak bandwidth and FLOP/s of a GPU, measured now, for comparison with timings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

namespace fuseline::cuda {

/// Peaks of the selected device: copies between large pieces of its memory, and large GEMMs by `gemms`, which launch on
/// the stream. Throws DeviceFault. Errors: there is no GEMM library.
Result<DevicePeaks> measurePeaks(int device, Stream stream, GemmLibrary& gemms);

}  // namespace fuseline::cuda
