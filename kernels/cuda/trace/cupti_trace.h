// Traces a device through CUPTI's activity records: each kernel by itself, with the step that launched it.
//
// A kernel that is launched by itself is found by the id that the launching thread has pushed at that time (external
// correlation); one of a CUDA graph by the id of its node, which is noted when the node is captured and followed when
// the graph is instantiated. CUPTI documentation, "CUPTI Activity API" and "CUDA Graphs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/support/result.h"
#include "kernels/cuda/trace/cupti.h"

#include <memory>

namespace fuseline::cuda {

/// CUPTI has one client per process: all existing traces share it, and only one of them runs at a time.
/// Errors: another tool is the client, with its name if CUPTI knows it, or CUPTI cannot work here; a sentence.
Result<std::unique_ptr<DeviceTrace>> makeCuptiTrace(const Cupti& library);

}  // namespace fuseline::cuda
