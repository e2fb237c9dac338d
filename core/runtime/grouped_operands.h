// The operands of grouped linear steps, the same for every backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/grouped_form.h"
#include "core/runtime/step_operand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuseline {

/// x: [rows, K], y: [rows, N].
struct GroupedSize {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t numGroups = 1;
};

/// tensor: one with the rows of x.
inline GroupedSize groupedSize(const StepRequest& request, const TensorSpec& tensor) {
  const Attributes& attributes = request.member(0).attributes;
  return {.rows = tensor.rows(),
          .n = attributes.integer("out_features"),
          .k = attributes.integer("in_features"),
          .numGroups = attributes.integer("num_groups")};
}

/// Where a row of the operand begins.
inline std::byte* rowOf(const Binding& binding, Pointers pointers, std::int64_t row) {
  return binding.at(pointers) + row * binding.spec.cols() * sizeBytes(binding.spec.dtype);
}

/// Row's value of an operand with one value per row; nullptr: absent.
inline std::byte* valueOf(const Binding& binding, Pointers pointers, std::int64_t row) {
  return binding ? binding.at(pointers) + row * sizeBytes(binding.spec.dtype) : nullptr;
}

/// A parameter of the groups, or its gradient. Slots may be absent. BackendBinding: result type of the backend's
/// findOperand().
template <class BackendBinding>
class GroupedOperand {
 public:
  template <class Request>
  GroupedOperand(const Request& request, OperandKind kind, const GroupedParameter& parameter)
      : m_isSingle(parameter.isSingle) {
    for (int slot = 0; slot < parameter.numSlots; ++slot)
      m_bindings.push_back(findOperand(request, {0, kind, parameter.firstSlot + slot}));
  }

  bool isPresent() const { return static_cast<bool>(any()); }
  /// The first one that is present: they are all alike. Absent if there is none.
  BackendBinding any() const {
    const auto found = std::ranges::find_if(m_bindings, [](const BackendBinding& binding) { return bool(binding); });
    return found == m_bindings.end() ? BackendBinding{} : *found;
  }
  /// f32 if there is none.
  DType dtype() const { return any().spec.dtype; }
  /// nullptr: absent.
  std::byte* at(Pointers pointers, std::size_t group) const {
    if (m_bindings.empty()) return nullptr;
    if (!m_isSingle) return m_bindings[group].at(pointers);
    const BackendBinding& all = m_bindings.front();
    if (!all) return nullptr;
    const auto partBytes = static_cast<std::size_t>(all.spec.bytes() / all.spec.shape.front());
    return all.at(pointers) + group * partBytes;
  }

 private:
  bool m_isSingle;
  std::vector<BackendBinding> m_bindings;
};

}  // namespace fuseline
