// Allows kernels shared memory beyond the default 48 KB, including their declared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fuseline::cuda {

/// Allows a kernel's launches so much dynamic shared memory on the current device, if they may not have it yet. The
/// allowance is the kernel's, which other threads launch, too: it only grows. Throws DeviceFault where the GPU has
/// less.
void allowSharedBytes(const void* function, std::size_t sharedBytes);

/// The kernel's code is unloaded: another one may have its address.
void forgetSharedBytes(const void* function);

}  // namespace fuseline::cuda
