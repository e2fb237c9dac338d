// The functions and types that generated elementwise code may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/dropout.h"
#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/functions.h"
#include "kernels/cuda/device/quantized_outputs.h"
