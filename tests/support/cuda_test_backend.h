// The backend that the tests of whole plans on CUDA kernels run on: the SIMT harness, or the first GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/support/result.h"

#include <memory>

namespace fuseline::testing {

/// Made at the first call. Defined by whom a test program is for: tests/support/simt or tests/kernels/gpu. Errors:
/// there is no GPU, with the reason.
Result<std::shared_ptr<Backend>> cudaTestBackend();

}  // namespace fuseline::testing
