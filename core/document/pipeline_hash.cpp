// A hash over the pipeline's text without its view.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/pipeline_hash.h"

#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/support/hash.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Frames belong to the view, so a version that they alone ask for does not count: the rest is written anew.
void dropVersionOfFrames(Json& pipeline) {
  const Json::json_pointer minor("/formatVersion/minor");
  if (!pipeline.contains(minor) || pipeline[minor] != Json(kFormatMinorOfFrames)) return;
  pipeline[minor] = 0;
  pipeline = Json::parse(serialize(parseDocument(pipeline.dump()).document));
}

}  // namespace

std::string hashWithoutView(Json pipeline) {
  if (pipeline.is_object()) pipeline.erase("view");
  dropVersionOfFrames(pipeline);
  return fmt::format("fnv1a64:{:016x}", fnv1a64(pipeline.dump()));
}

}  // namespace fuseline
