// The tensors of a plan that can be inspected after a run, by their names in plans and numerics.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Default limit of one capture.
inline constexpr std::int64_t kCaptureLimitBytes = std::int64_t{256} << 20;

/// Why a plan never stores a tensor of the unfused one.
struct FusedAway {
  std::string fusion;  // "ForwardLinearEpilogue(fc1.linear, fc1.bias, act)"
  std::string place;   // with which it is switched off: "ForwardLinearEpilogue@fc1"
};

struct CapturableTensor {
  std::string name;  // "x", "norm:y", "grad.fc1.weight", "fc1.input@rowwise"
  /// As captured: a quantized tensor is captured dequantized, in the dtype of its source.
  TensorSpec spec;
  std::string kind;           // "input", "parameter gradient", "quantized copy"
  std::string owner;          // the document's op that produces it, or else consumes it; empty: none
  std::vector<NodeId> nodes;  // its producer and consumers
  std::optional<FusedAway> fusedAway = std::nullopt;

  bool isStored() const { return !fusedAway; }
};

/// Name under which the tensor on an edge is captured: "x", "norm:y".
std::string capturableName(const Graph& graph, const Value& value);

/// Every tensor of both plans, in the order of the unfused one. plan: one of the two of `analysis`, which must be
/// runnable. Copies in host memory are left out: they equal listed tensors.
std::vector<CapturableTensor> capturableTensors(const Analysis& analysis, const Plan& plan);

struct TensorChoice {
  std::vector<CapturableTensor> tensors;  // stored by the plan
  std::vector<CapturableTensor> missing;  // of the named ops: tensors that are never stored

  std::int64_t bytes() const;
};

/// names: of tensors, or of ops for all of their inputs and outputs. Each tensor is chosen once.
/// Errors (Usage): no tensor or op has that name (with the nearest one), or a tensor that is never stored was named.
Result<TensorChoice> chooseTensors(const Graph& graph, std::span<const CapturableTensor> all,
                                   std::span<const std::string> names);

/// "act:y is never stored: ForwardLinearEpilogue(fc1.linear, act) needs no memory for it."
std::string neverStoredText(const CapturableTensor& tensor);

/// Errors (Usage): they take more than that, with both sizes and the largest tensor.
Result<void> checkCaptureSize(const TensorChoice& choice, std::int64_t limitBytes);

}  // namespace fuseline
