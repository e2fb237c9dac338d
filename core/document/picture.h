// Pipelines within pictures: a drawing, PNG or SVG, that opens as the pipeline it shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

enum class PictureKind { Png, Svg };

/// Kind of a picture by its first bytes, regardless of its name; nullopt if it is not a picture.
std::optional<PictureKind> pictureKindOf(std::string_view bytes);

/// The picture with the text of a pipeline in it: a PNG as an uncompressed iTXt "fuseline-pipeline", an SVG in its
/// metadata. Other programs show it as before. What is no whole picture is returned as it is.
/// Source: Portable Network Graphics (PNG) Specification, third edition, 11.3.3.4.
std::string withPipeline(std::string picture, std::string_view pipeline);

/// The text that withPipeline() put in. Time is linear in the picture.
/// Errors: a sentence: there is none in it, or it is damaged.
Result<std::string> pipelineIn(std::string_view picture);

}  // namespace fuseline
