// Embedding beside its definition: what its kernels, too, must know of its attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fuseline {

struct EmbeddingForm {
  std::int64_t numRows = 1;  // V
  std::int64_t width = 1;    // H
  std::optional<std::int64_t> paddingIndex;
  bool usesPositions = false;
  bool sharesWeight = false;

  bool hasRow(std::int64_t row) const { return row >= 0 && row < numRows; }
};

/// Form for attributes that infer accepts; sizes that are not set count as 1.
EmbeddingForm embeddingForm(const Attributes& attributes);

/// "Embedding: x[5] is 40000, but the table has 32000 rows, 0 to 31999." index: counts all elements of x.
std::string missingRowText(const EmbeddingForm& form, std::int64_t index, std::int64_t row);

}  // namespace fuseline
