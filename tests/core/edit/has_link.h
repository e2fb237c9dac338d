// Whether two ports of a document are joined.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"

#include <algorithm>

namespace fuseline::testing {

inline bool hasLink(const PipelineDocument& document, const char* from, const char* to) {
  return std::ranges::any_of(linksOf(document), [&](const fuseline::Link& link) {
    return toString(link.from) == from && toString(link.to) == to;
  });
}

}  // namespace fuseline::testing
