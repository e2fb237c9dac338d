// Copies tensors of a plan to the host while it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/tensor/tensor.h"

#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace fuseline {

struct CaptureRequest {
  std::shared_ptr<Backend> backend;
  const Graph& graph;
  const Plan& plan;  // without joins in place, which change tensors after their last writers
  /// Tensors from outside the graph.
  const NamedTensors& bindings;
  /// Names of tensors that the plan stores (core/plan/capturable_tensors.h).
  std::span<const std::string> tensors;
  /// Runs before the one that is looked at, so that delayed scales have settled. The updates of an optimizer are undone
  /// after them.
  int warmup = 0;
};

/// Runs the plan in its own memory and reads each tensor directly after the last step that writes it, before the run
/// reuses the memory. A quantized tensor is dequantized, and rounded to the dtype of its source. In the order of
/// `tensors`.
/// Errors: those of a run; the plan has no such tensor; the run was canceled.
Result<NamedTensors> captureTensors(const CaptureRequest& request, const std::stop_token& cancel = {});

}  // namespace fuseline
