// Launches of a whole plan as one CUDA graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/support/result.h"
#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/trace/launch_log.h"

#include <functional>
#include <memory>
#include <string>

namespace fuseline::cuda {

struct CaptureTarget {
  int device = 0;
  Stream stream = nullptr;
  std::shared_ptr<LaunchLog> log;
  std::string rank = {};  // "rank 1: "; empty: the only one
};

/// Captures the work that `launches` launches on the stream; it does not run. All code must be loaded before. Errors:
/// those of `launches`, or CUDA cannot capture a launch. Throws DeviceFault.
Result<std::unique_ptr<RecordedLaunches>> captureLaunches(const CaptureTarget& target,
                                                          const std::function<Result<void>()>& launches);

/// Throws DeviceFault with a sentence where launches on the stream are captured.
void refuseWhileCapturing(Stream stream);

}  // namespace fuseline::cuda
