// Kernels "adamw" and "grad_norm" in double precision, for the reference device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline {

/// Moments, float32 copies and sums of squares are rounded when they are stored. `graph` and `plan` outlive the kernel.
std::unique_ptr<Kernel> makeAdamWReference(const Graph& graph, const Plan& plan, const Step& step);
std::unique_ptr<Kernel> makeGradNormReference(const Graph& graph, const Plan& plan, const Step& step);

}  // namespace fuseline
