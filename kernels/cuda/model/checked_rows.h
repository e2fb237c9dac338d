// CheckedRows: numbers of rows of an embedding's table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/embedding_form.h"
#include "kernels/cuda/attention/run_counts.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cuda {

/// The numbers stay the same from run to run, as all that is bound to an executor: the host checks them in the first.
class CheckedRows {
 public:
  CheckedRows(EmbeddingForm form, Binding ids) : m_form(std::move(form)), m_ids(std::move(ids)) {}

  const EmbeddingForm& form() const { return m_form; }
  std::int64_t count() const { return m_ids.spec.numElements(); }
  /// More than 0: rows are positions among this number of tokens.
  std::int64_t tokens() const { return m_form.usesPositions ? m_ids.spec.cols() : 0; }

  /// Throws for a number that is no row.
  const std::int64_t* at(Pointers pointers, const DeviceContext& device) {
    if (!std::exchange(m_isChecked, true) && !m_form.usesPositions) check(readCounts(m_ids, pointers, device));
    return countsAt(m_ids, pointers);
  }

 private:
  void check(const std::vector<std::int64_t>& ids) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (!m_form.hasRow(ids[i]))
        throw std::runtime_error(missingRowText(m_form, static_cast<std::int64_t>(i), ids[i]));
  }

  EmbeddingForm m_form;
  Binding m_ids;
  bool m_isChecked = false;
};

}  // namespace fuseline::cuda
