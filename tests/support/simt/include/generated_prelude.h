// What every generated program includes, precompiled: most of the time of compiling one is this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/simt/include/cuda_runtime.h"

#include "kernels/cuda/device/generated.h"
