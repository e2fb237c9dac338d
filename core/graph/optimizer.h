// AdamW: the optimizer that may end a training pass, and the parameters that it updates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/adamw.h"
#include "core/support/enum_names.h"
#include "core/support/result.h"
#include "core/tensor/tensor_spec.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

class Graph;

template <>
struct EnumNames<LearningRateSchedule> {
  static constexpr std::array kNames = {std::pair(LearningRateSchedule::Constant, "constant"),
                                        std::pair(LearningRateSchedule::Linear, "linear"),
                                        std::pair(LearningRateSchedule::Cosine, "cosine")};
};

/// fields: such as ("lr", "0.01"). Errors (Usage): an unknown name, a value that is out of range, or fields that do not
/// go together, with the option.
Result<AdamW> adamWFrom(const std::vector<std::pair<std::string, std::string>>& fields);

/// A parameter that the optimizer of a graph updates, and what it keeps for it, all in float32.
struct TrainedParameter {
  int node = -1;
  int slot = 0;
  std::string name;      // "fc1.weight"
  std::string gradient;  // "grad.fc1.weight"
  TensorSpec spec;
  TensorSpec gradientSpec;
  bool isGradientAdded = false;  // to a main_grad buffer, which the optimizer sets to 0
  bool isShard = false;          // of a parameter that several ranks share
  bool isFrozen = false;         // another rank updates it

  /// A parameter of 16 bits has a float32 copy that small updates are not lost in.
  bool hasMaster() const { return spec.dtype != DType::F32; }
  TensorSpec stateSpec() const { return {.dtype = DType::F32, .shape = spec.shape}; }
  /// The moments, then the copy: TransformerEngine's names after the parameter's.
  std::vector<std::string> stateNames() const;
};

inline constexpr std::string_view kExpAvg = ".exp_avg";
inline constexpr std::string_view kExpAvgSq = ".exp_avg_sq";
inline constexpr std::string_view kMasterParam = ".master_param";
/// The number of updates so far, one int64.
inline constexpr std::string_view kOptimizerStep = "optimizer.step";
TensorSpec optimizerStepSpec();
/// Sums of the squares of all gradients, float32: of shards, and of parameters that every rank has whole.
inline constexpr std::string_view kGradientSquares = "optimizer.grad_squares";
TensorSpec gradientSquaresSpec();

/// In the order of the nodes. Empty if the graph has no optimizer.
std::vector<TrainedParameter> trainedParameters(const Graph& graph);

}  // namespace fuseline
