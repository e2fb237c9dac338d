// ExpertLoad: how evenly a run spread its rows over experts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

template <class T>
class FieldTable;

struct ExpertLoad {
  std::string op;                    // "layer0.permute", or a GroupedLinear whose split_sizes are no op's
  std::string owner;                 // the document's op id
  std::vector<std::int64_t> tokens;  // of each expert, without padding

  std::int64_t most() const;
  double mean() const;
  /// most() / mean(): 1 is even. 0 without tokens.
  double factor() const;
  bool operator==(const ExpertLoad&) const = default;
};

const FieldTable<ExpertLoad>& fieldsOf(const ExpertLoad*);

/// "permute: 1.52x the mean load (most 49, mean 32.2 tokens, 0 of 8 experts idle)": a line for people.
std::string expertLoadLine(const ExpertLoad& load);
/// The line of the most uneven load, with the range over all of them where there are several. Empty: no routing.
std::string expertLoadsText(const std::vector<ExpertLoad>& loads);

}  // namespace fuseline
