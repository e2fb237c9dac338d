// Loads of experts, as JSON and in words.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/experts/expert_load.h"

#include "core/support/field_bounds.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace fuseline {

std::int64_t ExpertLoad::most() const { return tokens.empty() ? 0 : *std::ranges::max_element(tokens); }

double ExpertLoad::mean() const {
  const auto sum = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  return tokens.empty() ? 0.0 : static_cast<double>(sum) / static_cast<double>(tokens.size());
}

double ExpertLoad::factor() const { return mean() > 0.0 ? static_cast<double>(most()) / mean() : 0.0; }

const FieldTable<ExpertLoad>& fieldsOf(const ExpertLoad*) {
  static const FieldTable<ExpertLoad> table({field("op", &ExpertLoad::op, "MoEPermute or GroupedLinear."),
                                             field("owner", &ExpertLoad::owner, "Op of the pipeline file."),
                                             amount(field("tokens", &ExpertLoad::tokens, "Tokens of each expert."))});
  return table;
}

std::string expertLoadLine(const ExpertLoad& load) {
  return fmt::format("{}: {:.2f}x the mean load (most {}, mean {:.1f} tokens, {} of {} experts idle)", load.op,
                     load.factor(), load.most(), load.mean(), std::ranges::count(load.tokens, 0), load.tokens.size());
}

std::string expertLoadsText(const std::vector<ExpertLoad>& loads) {
  if (loads.empty()) return {};
  const auto [least, most] = std::ranges::minmax_element(loads, {}, &ExpertLoad::factor);
  const std::string line = expertLoadLine(*most);
  if (loads.size() == 1) return line;
  return fmt::format("{}; {:.2f}x to {:.2f}x in {} routings", line, least->factor(), most->factor(), loads.size());
}

}  // namespace fuseline
