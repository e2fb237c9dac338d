// Updates of delayed scaling, and their form in files.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/delayed_scaling.h"

#include "core/quant/scale_math.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::string_view kRecipe = "DelayedScaling";
constexpr std::string_view kScale = ".scale";
constexpr std::string_view kHistory = ".amax_history";

Tensor tensorOf(std::span<const float> values, Shape shape) {
  Tensor tensor = Tensor::zeros({DType::F32, std::move(shape)});
  std::ranges::copy(std::as_bytes(values), tensor.data.begin());
  return tensor;
}

std::vector<float> valuesOf(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.spec.numElements()));
  std::ranges::copy(tensor.data, std::as_writable_bytes(std::span(values)).begin());
  return values;
}

const Tensor* find(const NamedTensors& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensors::value_type::first);
  return found == tensors.end() ? nullptr : &found->second;
}

Error stateError(std::string_view name, std::string_view sentence) {
  return {fmt::format("The delayed-scaling state {}: {}", name, sentence)};
}

/// The format of a tensor under a recipe: that of the first GEMM that reads it.
float maxFiniteOf(const Recipe& recipe, TensorType role) {
  for (const OperandRole operand : operandRoles())
    if (operand.tensor == role)
      if (const auto spec = recipe.quantizerFor(operand)) return maxFinite(spec->format);
  return maxFinite(ElementFormat::E4M3);
}

DelayedUpdate updateOf(const Recipe& recipe, const std::vector<TensorType>& roles) {
  DelayedUpdate update{.margin = static_cast<int>(recipe.fields().integer("margin")),
                       .takesMostRecent = recipe.fields().text("amax_compute_algo") == "most_recent",
                       .maxFinites = {}};
  for (const TensorType role : roles) update.maxFinites.push_back(maxFiniteOf(recipe, role));
  return update;
}

std::optional<TensorType> parseRole(std::string_view name) {
  for (const TensorType role : {TensorType::Input, TensorType::Weight, TensorType::GradOutput})
    if (roleName(role) == name) return role;
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

/// "recipe/op/pass/roles"; the name of the op may have slashes of its own.
struct StateName {
  std::string recipe;
  std::string op;
  StatePass pass = StatePass::Forward;
  std::vector<TensorType> roles;
};

Result<std::vector<TensorType>> parseRoles(const std::string& text) {
  std::vector<TensorType> roles;
  for (const std::string& name : split(text, ',')) {
    const auto role = parseRole(name);
    if (!role) return Error{fmt::format("'{:.40}' is no role of a tensor.", name)};
    roles.push_back(*role);
  }
  return roles;
}

Result<StateName> parseStateName(const std::string& name) {
  const std::vector<std::string> parts = split(name, '/');
  if (parts.size() < 4) return Error{"expected a name of the form recipe/op/pass/roles."};
  const std::string& pass = parts[parts.size() - 2];
  if (pass != "forward" && pass != "backward") return Error{fmt::format("'{:.40}' is no pass.", pass)};
  Result<std::vector<TensorType>> roles = parseRoles(parts.back());
  if (!roles) return roles.error();
  return StateName{.recipe = parts.front(),
                   .op = fmt::format("{}", fmt::join(parts.begin() + 1, parts.end() - 2, "/")),
                   .pass = pass == "forward" ? StatePass::Forward : StatePass::Backward,
                   .roles = std::move(*roles)};
}

}  // namespace

DelayedScalingState::DelayedScalingState(std::size_t numTensors, std::size_t historyLength)
    : m_scales(numTensors, 1.0f), m_history(numTensors * historyLength, 0.0f) {}

void DelayedScalingState::recordAmax(std::size_t tensor, float amax) { at(0, tensor) = std::fmax(at(0, tensor), amax); }

namespace {

/// One tensor's column of a history.
class AmaxColumn {
 public:
  AmaxColumn(std::span<float> history, std::size_t numTensors, std::size_t tensor)
      : m_history(history), m_numTensors(numTensors), m_tensor(tensor) {}

  std::size_t length() const { return m_history.size() / m_numTensors; }
  float& operator[](std::size_t row) { return m_history[row * m_numTensors + m_tensor]; }

  /// Of the history and the amax of the step.
  float largest(float last) {
    float result = last;
    for (std::size_t row = 1; row < length(); ++row) result = std::fmax(result, (*this)[row]);
    return result;
  }

  /// Drops the oldest amax, in row 1, and makes row 0 free for the next step.
  void roll(float last) {
    for (std::size_t row = 1; row + 1 < length(); ++row) (*this)[row] = (*this)[row + 1];
    (*this)[length() - 1] = last;
    (*this)[0] = 0.0f;
  }

 private:
  std::span<float> m_history;
  std::size_t m_numTensors;
  std::size_t m_tensor;
};

}  // namespace

void updateDelayedScaling(std::span<float> scales, std::span<float> history, const DelayedUpdate& options,
                          std::span<const float> reduced) {
  for (std::size_t tensor = 0; tensor < scales.size(); ++tensor) {
    AmaxColumn amaxes(history, scales.size(), tensor);
    const bool isReduced = !reduced.empty() && reduced[tensor] != 0.0f;
    const float last = isReduced ? reduced[tensor] : amaxes[0];
    if (last == 0.0f) continue;
    const float used = options.takesMostRecent ? last : amaxes.largest(last);
    scales[tensor] = delayedScale(used, scales[tensor], options.maxFinites[tensor], options.margin);
    amaxes.roll(last);
  }
}

void DelayedScalingState::update(const DelayedUpdate& options, std::span<const float> reduced) {
  updateDelayedScaling(m_scales, m_history, options, reduced);
}

void DelayedScalingState::resizeHistory(std::size_t historyLength) {
  m_history.resize(historyLength * numTensors(), 0.0f);
}

NamedTensors DelayedScalingState::toTensors(std::string_view name) const {
  const auto count = static_cast<std::int64_t>(numTensors());
  const auto length = static_cast<std::int64_t>(historyLength());
  return {{fmt::format("{}{}", name, kScale), tensorOf(m_scales, {count})},
          {fmt::format("{}{}", name, kHistory), tensorOf(m_history, {length, count})}};
}

Result<DelayedScalingState> DelayedScalingState::fromTensors(std::string_view name, const NamedTensors& tensors) {
  const Tensor* scales = find(tensors, fmt::format("{}{}", name, kScale));
  const Tensor* history = find(tensors, fmt::format("{}{}", name, kHistory));
  if (!scales || !history) return stateError(name, "its scale or its amax_history is missing.");
  const bool isF32 = scales->spec.dtype == DType::F32 && history->spec.dtype == DType::F32;
  const bool fits = scales->spec.shape.size() == 1 && history->spec.shape.size() == 2 &&
                    scales->spec.cols() == history->spec.cols() && scales->spec.cols() > 0 && history->spec.rows() > 0;
  if (!isF32 || !fits)
    return stateError(name, fmt::format("expected scale [n] f32 and amax_history [length, n] f32, found {} and {}.",
                                        toString(scales->spec), toString(history->spec)));
  DelayedScalingState state(0, 0);
  state.m_scales = valuesOf(*scales);
  state.m_history = valuesOf(*history);
  return state;
}

std::string_view passName(StatePass pass) { return pass == StatePass::Forward ? "forward" : "backward"; }

/// Scales belong to a format; margin, algorithm and length only shape the next update.
std::string stateIdentity(const Recipe& recipe) {
  std::string identity = fmt::format("{}-{}", recipe.name(), recipe.fields().text("fp8_format"));
  for (const RoleOverride& special : recipe.overrides())
    if (special.format)
      identity += fmt::format("{}{}-{}-{}-{}", special.op.empty() ? "" : "-", special.op,
                              special.tensor ? roleName(*special.tensor) : "any",
                              special.gemm ? roleName(*special.gemm) : "any", formatName(*special.format));
  return identity;
}

DelayedScalingState& DelayedScalingStore::state(const Recipe& recipe, const std::string& op, StatePass pass,
                                                const std::vector<TensorType>& roles) {
  const auto length = static_cast<std::size_t>(recipe.fields().integer("amax_history_len"));
  const Key key(stateIdentity(recipe), op, pass);
  const auto found = m_entries.find(key);
  if (found == m_entries.end() || found->second.roles != roles)
    return m_entries.insert_or_assign(key, Entry{roles, DelayedScalingState(roles.size(), length)}).first->second.state;
  if (found->second.state.historyLength() != length) found->second.state.resizeHistory(length);
  return found->second.state;
}

std::vector<DelayedScalingStore::Entry*> DelayedScalingStore::entriesOf(const Recipe& recipe, StatePass pass) {
  std::vector<Entry*> entries;
  for (auto& [key, entry] : m_entries)
    if (std::get<0>(key) == stateIdentity(recipe) && std::get<2>(key) == pass) entries.push_back(&entry);
  return entries;
}

void DelayedScalingStore::update(const Recipe& recipe, StatePass pass, const AmaxReduction& reduce) {
  const std::vector<Entry*> entries = entriesOf(recipe, pass);
  std::vector<float> amaxes;
  for (const Entry* entry : entries) std::ranges::copy(entry->state.currentAmaxes(), std::back_inserter(amaxes));
  if (reduce && recipe.fields().boolean("reduce_amax")) reduce(amaxes);
  std::size_t begin = 0;
  for (Entry* entry : entries) {
    entry->state.update(updateOf(recipe, entry->roles), std::span(amaxes).subspan(begin, entry->roles.size()));
    begin += entry->roles.size();
  }
}

NamedTensors DelayedScalingStore::toTensors() const {
  NamedTensors tensors;
  for (const auto& [key, entry] : m_entries) {
    std::vector<std::string_view> roles;
    for (const TensorType role : entry.roles) roles.push_back(roleName(role));
    const auto& [recipe, op, pass] = key;
    const std::string name = fmt::format("{}/{}/{}/{}", recipe, op, passName(pass), fmt::join(roles, ","));
    std::ranges::move(entry.state.toTensors(name), std::back_inserter(tensors));
  }
  return tensors;
}

Result<DelayedScalingStore> DelayedScalingStore::fromTensors(const NamedTensors& tensors) {
  DelayedScalingStore store;
  for (const auto& [fullName, tensor] : tensors) {
    if (!fullName.starts_with(kRecipe) || !fullName.ends_with(kHistory)) continue;
    const std::string name = fullName.substr(0, fullName.size() - kHistory.size());
    Result<StateName> place = parseStateName(name);
    if (!place) return stateError(name, place.error().message);
    Result<DelayedScalingState> state = DelayedScalingState::fromTensors(name, tensors);
    if (!state) return state.error();
    if (state->numTensors() != place->roles.size())
      return stateError(name, fmt::format("it has {} scales for {} roles.", state->numTensors(), place->roles.size()));
    store.m_entries.insert_or_assign({place->recipe, place->op, place->pass},
                                     Entry{std::move(place->roles), std::move(*state)});
  }
  return store;
}

}  // namespace fuseline
