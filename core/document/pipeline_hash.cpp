// A hash over the pipeline's text without its view.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/pipeline_hash.h"

#include "core/support/hash.h"

#include <fmt/format.h>

namespace fuseline {

std::string hashWithoutView(Json pipeline) {
  if (pipeline.is_object()) pipeline.erase("view");
  return fmt::format("fnv1a64:{:016x}", fnv1a64(pipeline.dump()));
}

}  // namespace fuseline
