// What DelayedScaling remembers from step to step: scales and the amaxes they follow from.
// Source: TransformerEngine's fused update, which differs from its unfused one where an amax is 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/tensor/tensor.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fuseline {

struct DelayedUpdate {
  int margin = 0;
  /// Otherwise the largest of the history.
  bool takesMostRecent = false;
  /// Of the format of each tensor.
  std::vector<float> maxFinites;
};

/// Ends a step: the history moves on and the scales follow. A tensor with the amax 0, one that was not used, keeps
/// both. history: rows of one amax a tensor, row 0 the step at hand. reduced: the amaxes over all ranks, where they are
/// not 0; may be empty.
void updateDelayedScaling(std::span<float> scales, std::span<float> history, const DelayedUpdate& options,
                          std::span<const float> reduced = {});

/// The state of the tensors that one op quantizes in one pass. Scales begin at 1, amaxes at 0.
class DelayedScalingState {
 public:
  DelayedScalingState(std::size_t numTensors, std::size_t historyLength);

  std::size_t numTensors() const { return m_scales.size(); }
  std::size_t historyLength() const { return m_history.size() / std::max<std::size_t>(numTensors(), 1); }
  /// What the tensor is multiplied by at this step.
  float scale(std::size_t tensor) const { return m_scales[tensor]; }
  /// Row 0 is the step at hand; the others are earlier ones, the oldest first.
  float amax(std::size_t row, std::size_t tensor) const { return m_history[row * numTensors() + tensor]; }
  std::span<const float> currentAmaxes() const { return {m_history.data(), numTensors()}; }

  /// Raises the amax of the step at hand. NaN is ignored.
  void recordAmax(std::size_t tensor, float amax);

  /// updateDelayedScaling() of this state.
  void update(const DelayedUpdate& options, std::span<const float> reduced = {});

  /// Keeps the first rows, or adds rows of zeros at the end, as TransformerEngine does.
  void resizeHistory(std::size_t historyLength);

  /// `<name>.scale` [tensors] and `<name>.amax_history` [length, tensors], f32.
  NamedTensors toTensors(std::string_view name) const;
  /// The inverse, bit for bit. Errors: a tensor is missing or has the wrong shape.
  static Result<DelayedScalingState> fromTensors(std::string_view name, const NamedTensors& tensors);

  bool operator==(const DelayedScalingState&) const = default;

 private:
  float& at(std::size_t row, std::size_t tensor) { return m_history[row * numTensors() + tensor]; }

  std::vector<float> m_scales;
  std::vector<float> m_history;
};

/// Which pass of an op quantizes the tensors.
enum class StatePass : std::uint8_t { Forward, Backward };
std::string_view passName(StatePass pass);  // "forward", "backward"

/// Maximum over all ranks, in place; one call for all amaxes of an update.
using AmaxReduction = std::function<void(std::span<float> amaxes)>;

/// The part of a recipe with `hasState` that its states depend on: recipes with the same one share them.
std::string stateIdentity(const Recipe& recipe);

/// The states of all ops under recipes with `hasState`, kept apart by recipe: a step with another recipe, or with none,
/// loses nothing.
class DelayedScalingStore {
 public:
  /// The state of an op's tensors in one pass, made at the first call. Recipes share it if their formats are the same;
  /// the history takes the length that the recipe asks for now.
  DelayedScalingState& state(const Recipe& recipe, const std::string& op, StatePass pass,
                             const std::vector<TensorType>& roles);

  /// Updates every state of the recipe in one pass. For when, see quantization_scope.h.
  void update(const Recipe& recipe, StatePass pass, const AmaxReduction& reduce = {});

  /// All states, as plain tensors for a file. `<recipe>/<op>/<pass>/<roles>.scale` ...
  NamedTensors toTensors() const;
  /// The inverse, bit for bit; other tensors of the file are left alone. Errors: a state is broken.
  static Result<DelayedScalingStore> fromTensors(const NamedTensors& tensors);

  bool operator==(const DelayedScalingStore&) const = default;

 private:
  struct Entry {
    std::vector<TensorType> roles;
    DelayedScalingState state;
    bool operator==(const Entry&) const = default;
  };
  /// Identity of the recipe, op, pass.
  using Key = std::tuple<std::string, std::string, StatePass>;

  std::vector<Entry*> entriesOf(const Recipe& recipe, StatePass pass);

  std::map<Key, Entry> m_entries;
};

}  // namespace fuseline
