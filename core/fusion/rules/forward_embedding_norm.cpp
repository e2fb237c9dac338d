// Rows of an embedding normalized while they are looked up.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

Condition normalizesRowsOfTheTable() {
  return {.sentence = "The norm normalizes each row of the table by itself.",
          .holds =
              [](const Match& match) {
                const Node& table = *match.role("embedding");
                const Node& norm = *match.role("norm");
                const std::int64_t width = table.parameters.front().shape.back();
                const std::int64_t normalized = norm.parameters.front().numElements();
                if (width == normalized) return Verdict::yes();
                return Verdict::no(fmt::format("{} normalizes {} elements together, but rows of {} have {}.", norm.id,
                                               normalized, table.id, width));
              },
          .repairs = {}};
}

}  // namespace

/// Backward has nothing to fuse: the gradient of the table adds rows up in another order.
FusionRule forward_embedding_norm() {
  return {
      .name = "ForwardEmbeddingNorm",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The norm reads the rows of the table, so rows that only backward or a residual needs are written but not "
          "read again. Results are bitwise identical.",
      .chain = {{.role = "embedding", .operations = {"Embedding"}},
                {.role = "save", .operations = {"MakeExtraOutput"}, .repeat = Repeat::Optional},
                {.role = "norm", .operations = {"RMSNorm", "LayerNorm"}}},
      .conditions = {normalizesRowsOfTheTable(), sameDType("embedding", "norm")},
      .becomes = "embedding_norm",
      .writesBranches = true,
  };
}

}  // namespace fuseline::rules
