// Reads the attributes of Embedding.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding_form.h"

#include <fmt/format.h>

namespace fuseline {

EmbeddingForm embeddingForm(const Attributes& attributes) {
  EmbeddingForm form{.usesPositions = attributes.boolean("positions"),
                     .sharesWeight = attributes.boolean("shares_weight")};
  if (attributes.has("num_embeddings")) form.numRows = attributes.integer("num_embeddings");
  if (attributes.has("embedding_dim")) form.width = attributes.integer("embedding_dim");
  if (attributes.has("padding_idx")) form.paddingIndex = attributes.integer("padding_idx");
  return form;
}

std::string missingRowText(const EmbeddingForm& form, std::int64_t index, std::int64_t row) {
  return fmt::format("Embedding: x[{}] is {}, but the table has {} rows, 0 to {}.", index, row, form.numRows,
                     form.numRows - 1);
}

}  // namespace fuseline
