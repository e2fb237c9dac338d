// RotaryPositionEmbedding beside its definition: what its kernels, too, must know of its attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"
#include "core/ops/token_layout.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fuseline {

struct RotaryForm {
  static constexpr int kInput = 0;  // slots of its inputs; -1: it has none
  int cuSeqlensSlot = -1;
  int startPositionsSlot = -1;

  QkvFormat format = QkvFormat::Sbhd;
  std::int64_t dim = 1;      // channels of a head, D
  std::int64_t rotated = 0;  // of these: the first ones, R
  bool isInterleaved = false;
  std::int64_t offset = 0;     // position of the first token
  std::int64_t maxLength = 0;  // of a sequence, with the positions before it; 0: any

  std::int64_t numPairs() const { return rotated / 2; }
  /// The channels of pair m.
  std::int64_t firstOf(std::int64_t m) const { return isInterleaved ? 2 * m : m; }
  std::int64_t secondOf(std::int64_t m) const { return isInterleaved ? 2 * m + 1 : m + numPairs(); }
};

/// Form for attributes that infer accepts.
RotaryForm rotaryForm(const Attributes& attributes);

/// Any heads. Errors: x does not fit the attributes.
Result<TokenLayout> rotaryLayout(const RotaryForm& form, const Shape& x);

/// Do frequencies depend on the length of the longest sequence, as with dynamic and longrope?
bool hasFrequenciesByLength(const Attributes& attributes);
/// Radians by position of each pair, scaled as rope_type says; R / 2 numbers. length: of the longest sequence, unless
/// max_seq_len says it.
std::vector<double> rotaryFrequencies(const Attributes& attributes, std::int64_t length);
/// The numbers of short_factor or long_factor, "1.0, 1.5": one for each pair. Errors: another text, none above 0.
Result<std::vector<double>> rotaryFactors(const Attributes& attributes, std::string_view name);
/// Factor of sines and cosines; 1 except for yarn and longrope.
double rotaryAttentionFactor(const Attributes& attributes);

/// Positions that x may have, not counting start_positions.
std::int64_t rotaryLength(const RotaryForm& form, const TokenLayout& x);

/// The position of each token of x, in the order [batch entry, token]; -1 for tokens that no sequence has, which pass
/// unchanged. cuSeqlens, startPositions: empty where the op has none.
/// Errors: as sequencesOf(); a negative start position, a position beyond max_seq_len.
Result<std::vector<std::int64_t>> rotaryPositions(const RotaryForm& form, const TokenLayout& x,
                                                  std::span<const std::int64_t> cuSeqlens,
                                                  std::span<const std::int64_t> startPositions);

}  // namespace fuseline
