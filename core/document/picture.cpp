// Writes and finds the chunk or the element that holds a pipeline. Pictures come from other machines: every length in
// them is checked.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/picture.h"

#include "core/document/format_version.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kHeadBytes = 4096;
constexpr const char* kOrigin =
    "Export a drawing with File > Export drawing in the designer, or with `fuseline export --to svg`.";

// ------------------------------------------------------------------------------------------------------------- PNG

constexpr std::string_view kSignature = "\x89PNG\r\n\x1A\n"sv;
constexpr std::size_t kHeaderChunkBytes = 25;  // IHDR: 13 bytes of data
constexpr std::size_t kChunkFrameBytes = 12;   // length, type and checksum
/// The keyword, then: not compressed, by method 0, no language, no translated keyword.
constexpr std::string_view kTextHead = "fuseline-pipeline\0\0\0\0\0"sv;
constexpr std::string_view kKeyword = "fuseline-pipeline\0"sv;
static_assert(kKeyword.substr(0, kKeyword.size() - 1) == kFormatName);

constexpr std::array<std::uint32_t, 256> makeCrcTable() {
  constexpr std::uint32_t kPolynomial = 0xEDB88320u;  // of ISO 3309, its bits reversed
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1u) != 0 ? kPolynomial ^ (value >> 1u) : value >> 1u;
    table[byte] = value;
  }
  return table;
}

std::uint32_t crc32(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = makeCrcTable();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFu] ^ (crc >> 8u);
  return ~crc;
}

std::string bigEndian(std::uint32_t value) {
  std::string bytes;
  for (const unsigned shift : {24u, 16u, 8u, 0u}) bytes += static_cast<char>((value >> shift) & 0xFFu);
  return bytes;
}

/// bytes: at least four.
std::uint32_t fromBigEndian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8u) | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string textChunk(std::string_view pipeline) {
  const std::string content = fmt::format("iTXt{}{}", kTextHead, pipeline);
  const auto length = static_cast<std::uint32_t>(content.size() - 4);
  return bigEndian(length) + content + bigEndian(crc32(content));
}

/// Directly after the header, so that it is found without reading the pixels.
std::string pngWith(std::string png, std::string_view pipeline) {
  constexpr std::size_t kPlace = kSignature.size() + kHeaderChunkBytes;
  if (png.size() >= kPlace) png.insert(kPlace, textChunk(pipeline));
  return png;
}

/// A chunk: "iTXt" and what follows it, and whether its checksum is right.
struct Chunk {
  std::string_view content;
  bool isWhole = false;
};

/// Takes the first chunk off the bytes. Nothing: there is no whole one.
std::optional<Chunk> takeChunk(std::string_view& bytes) {
  if (bytes.size() < kChunkFrameBytes) return std::nullopt;
  const std::size_t length = fromBigEndian(bytes);
  if (length > bytes.size() - kChunkFrameBytes) return std::nullopt;
  const std::string_view content = bytes.substr(4, length + 4);
  const bool isWhole = crc32(content) == fromBigEndian(bytes.substr(length + 8));
  bytes.remove_prefix(length + kChunkFrameBytes);
  return Chunk{content, isWhole};
}

Error noPipeline() { return Error{fmt::format("This drawing contains no pipeline. {}", kOrigin)}; }

Error damaged(std::string_view what) {
  return Error{fmt::format("The pipeline in this drawing {}. {}", what, kOrigin)};
}

Result<std::string> pipelineInPng(std::string_view png) {
  png.remove_prefix(kSignature.size());
  while (const std::optional<Chunk> chunk = takeChunk(png)) {
    std::string_view content = chunk->content;
    if (!content.starts_with("iTXt") || !content.substr(4).starts_with(kKeyword)) continue;
    content.remove_prefix(4);
    if (!chunk->isWhole) return damaged("is damaged: its checksum does not match");
    if (!content.starts_with(kTextHead)) return damaged("was recompressed by another program, which is not supported");
    return std::string(content.substr(kTextHead.size()));
  }
  return noPipeline();
}

// ------------------------------------------------------------------------------------------------------------- SVG

constexpr std::string_view kElement = R"(<fuseline-pipeline xmlns="urn:fuseline:pipeline">)";
constexpr std::string_view kElementBegin = "<fuseline-pipeline";
constexpr std::string_view kElementEnd = "</fuseline-pipeline>";
constexpr std::string_view kRootEnd = "</svg>";

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

std::string escapedXml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto entity = std::ranges::find(kEntities, c, &std::pair<std::string_view, char>::second);
    const bool isMarkup = c == '&' || c == '<' || c == '>';
    isMarkup ? escaped.append(entity->first) : escaped.append(1, c);
  }
  return escaped;
}

/// Nothing where there is an entity that escapedXml() does not write, and no program needs for this text.
std::optional<std::string> unescapedXml(std::string_view escaped) {
  std::string text;
  while (!escaped.empty()) {
    const auto begins = [&](const auto& entity) { return escaped.starts_with(entity.first); };
    const auto entity = std::ranges::find_if(kEntities, begins);
    if (entity == kEntities.end() && (escaped.front() == '&' || escaped.front() == '<')) return std::nullopt;
    text += entity == kEntities.end() ? escaped.front() : entity->second;
    escaped.remove_prefix(entity == kEntities.end() ? 1 : entity->first.size());
  }
  return text;
}

std::string svgWith(std::string svg, std::string_view pipeline) {
  const std::size_t place = svg.rfind(kRootEnd);
  if (place == std::string::npos) return svg;
  const std::string metadata =
      fmt::format("<metadata>{}{}{}</metadata>\n", kElement, escapedXml(pipeline), kElementEnd);
  return svg.insert(place, metadata);
}

Result<std::string> pipelineInSvg(std::string_view svg) {
  const std::size_t begin = svg.find(kElementBegin);
  if (begin == std::string_view::npos) return noPipeline();
  const std::size_t open = svg.find('>', begin);
  const std::size_t end = svg.find(kElementEnd, begin);
  if (open == std::string_view::npos || end == std::string_view::npos || end < open)
    return damaged("is damaged: its end is missing");
  std::optional<std::string> text = unescapedXml(svg.substr(open + 1, end - open - 1));
  if (!text) return damaged("is damaged: it contains markup");
  return std::move(*text);
}

}  // namespace

std::optional<PictureKind> pictureKindOf(std::string_view bytes) {
  if (bytes.starts_with(kSignature)) return PictureKind::Png;
  const std::string_view head = bytes.substr(0, kHeadBytes);
  const std::size_t first = head.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  const bool isMarkup = first != std::string_view::npos && head[first] == '<';
  const bool isSvg = isMarkup && head.find("<svg") != std::string_view::npos && head.find("<html") == head.npos;
  return isSvg ? std::optional(PictureKind::Svg) : std::nullopt;
}

std::string withPipeline(std::string picture, std::string_view pipeline) {
  const std::optional<PictureKind> kind = pictureKindOf(picture);
  if (!kind) return picture;
  return *kind == PictureKind::Png ? pngWith(std::move(picture), pipeline) : svgWith(std::move(picture), pipeline);
}

Result<std::string> pipelineIn(std::string_view picture) {
  const std::optional<PictureKind> kind = pictureKindOf(picture);
  if (!kind) return noPipeline();
  return *kind == PictureKind::Png ? pipelineInPng(picture) : pipelineInSvg(picture);
}

}  // namespace fuseline
