// A backend that runs the CUDA kernels on the SIMT harness: their own sources, on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline::testing {

std::shared_ptr<Backend> makeSimtBackend();

}  // namespace fuseline::testing
