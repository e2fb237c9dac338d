// Memory for a result that a test passes to an executor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/executor.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::testing {

/// Host memory, aligned as a plan's own is, and filled with bytes that no result has.
class ResultMemory {
 public:
  explicit ResultMemory(TensorSpec spec)
      : m_spec(std::move(spec)), m_lines(1 + static_cast<std::size_t>(m_spec.bytes()) / sizeof(Line)) {
    std::ranges::fill(std::span(data(), m_lines.size() * sizeof(Line)), std::byte{0x5a});
  }

  const TensorSpec& spec() const { return m_spec; }
  std::byte* data() { return m_lines.front().bytes; }
  ResultBuffer forTensor(std::string name) { return {std::move(name), m_spec, data()}; }
  std::vector<double> values() {
    Tensor tensor = Tensor::zeros(m_spec);
    std::copy_n(data(), tensor.data.size(), tensor.data.begin());
    return tensor.toDoubles();
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  TensorSpec m_spec;
  std::vector<Line> m_lines;
};

}  // namespace fuseline::testing
