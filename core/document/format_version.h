// Names and limits of the pipeline file that reader, writer and schema share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace fuseline {

inline constexpr const char* kFormatName = "fuseline-pipeline";
/// Format name of a run record (core/profile/run_record.h).
inline constexpr const char* kRunFormatName = "fuseline-run";
inline constexpr const char* kSchemaName = "fuseline-pipeline-1.json";
inline constexpr int kFormatMajor = 1;
inline constexpr int kFormatMinor = 6;
/// The minor version that brought "blocks"; a file with blocks says at least this.
inline constexpr int kFormatMinorOfBlocks = 1;
/// The minor version that brought "bypassed"; a file with a bypassed op says at least this.
inline constexpr int kFormatMinorOfBypass = 2;
/// The minor version that brought "frames"; a file with a frame says at least this.
inline constexpr int kFormatMinorOfFrames = 3;
/// The minor version that brought "weights"; a file with such a table says at least this.
inline constexpr int kFormatMinorOfWeights = 4;
/// The minor version that brought "onnx"; a file with such a section says at least this.
inline constexpr int kFormatMinorOfOnnx = 5;
/// The minor version that brought "layer" of instances; a file with such an attribute says at least this.
inline constexpr int kFormatMinorOfLayers = 6;
inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;

inline constexpr int kMaxFrameSide = 1'000'000;
/// Maximum distance of a frame's corner from the origin, so that its other corner is an integer too.
inline constexpr int kMaxFramePlace = 1'000'000'000;
/// May a frame be there?
constexpr bool isFrameArea(int x, int y, int width, int height) {
  const auto isPlace = [](int place) { return place >= -kMaxFramePlace && place <= kMaxFramePlace; };
  const auto isSide = [](int side) { return side >= 1 && side <= kMaxFrameSide; };
  return isPlace(x) && isPlace(y) && isSide(width) && isSide(height);
}
inline constexpr std::array<std::string_view, 5> kFrameColors = {"blue", "green", "yellow", "red", "purple"};

std::string fileTooLarge(std::size_t bytes);

}  // namespace fuseline
