// Common includes of every generated program, precompiled: they take most of the compilation time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/simt/include/cuda_runtime.h"

#include "kernels/cuda/device/generated.h"
