// RowNumbers: the row of an embedding's table for each element of x.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/embedding_form.h"

#include <cstdint>
#include <stdexcept>

namespace fuseline::cpu {

class RowNumbers {
 public:
  RowNumbers(const EmbeddingForm& form, const TensorSpec& x)
      : m_form(form), m_count(x.numElements()), m_tokens(x.cols()) {}

  std::int64_t count() const { return m_count; }
  /// Throws for a number that is no row.
  void check(const std::int64_t* ids) const {
    for (std::int64_t i = 0; i < m_count && !m_form.usesPositions; ++i)
      if (!m_form.hasRow(ids[i])) throw std::runtime_error(missingRowText(m_form, i, ids[i]));
  }
  std::int64_t at(const std::int64_t* ids, std::int64_t index) const {
    return m_form.usesPositions ? index % m_tokens : ids[index];
  }

 private:
  EmbeddingForm m_form;
  std::int64_t m_count;
  std::int64_t m_tokens;
};

}  // namespace fuseline::cpu
