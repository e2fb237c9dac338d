// Converts error codes of the CUDA runtime to exceptions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

/// A call of the CUDA runtime failed; the message is a sentence.
class DeviceFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws DeviceFault: "The GPU could not <action>: <CUDA's words> (<name>)."
void check(cudaError_t error, const char* action);

/// Selects the device for this thread: the runtime keeps it per thread, and the caller may be any. Throws DeviceFault.
void useDevice(int device);
/// The one that is selected. Throws DeviceFault.
int selectedDevice();

}  // namespace fuseline::cuda
