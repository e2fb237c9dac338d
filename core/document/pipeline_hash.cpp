// A hash over the pipeline's text without its view.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/pipeline_hash.h"

#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/support/hash.h"

#include <cstdint>

#include <fmt/format.h>

namespace fuseline {

namespace {

void dropViews(Json& pipeline) {
  if (!pipeline.is_object()) return;
  pipeline.erase("view");
  if (!pipeline.contains("blocks") || !pipeline["blocks"].is_object()) return;
  for (Json& block : pipeline["blocks"])
    if (block.is_object()) block.erase("view");
}

/// Frames belong to the view, so a version that they alone ask for does not count, nor does one that is higher than the
/// rest asks for: it is written anew.
void dropVersionOfViews(Json& pipeline) {
  const Json::json_pointer minor("/formatVersion/minor");
  if (!pipeline.contains(minor) || !pipeline[minor].is_number_integer()) return;
  const auto version = pipeline[minor].get<std::int64_t>();
  if (version <= 0 || version > kFormatMinor) return;
  pipeline[minor] = 0;
  pipeline = toJson(readDocument(pipeline).document);
}

}  // namespace

std::string hashWithoutView(Json pipeline) {
  dropViews(pipeline);
  dropVersionOfViews(pipeline);
  return fmt::format("fnv1a64:{:016x}", fnv1a64(pipeline.dump()));
}

}  // namespace fuseline
