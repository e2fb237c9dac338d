// Pictures keep any pipeline, and damaged or foreign ones are refused with a sentence.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/picture.h"

#include "core/document/file_format.h"
#include "core/support/atomic_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace fuseline {
namespace {

using namespace std::string_literals;
using testing::TemporaryFolder;

/// One black pixel, as libpng writes it.
const std::string kPng =
    "\x89PNG\r\n\x1A\n"
    "\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3A\x7E\x9B\x55"
    "\0\0\0\nIDAT\x78\x9C\x63\x60\0\0\0\2\0\1\x48\xAF\xA4\x71"
    "\0\0\0\0IEND\xAE\x42\x60\x82"s;
const std::string kSvg = "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"><g/>\n</svg>\n";

const std::string kOrigin =
    " Export a drawing with File > Export drawing in the designer, or with `fuseline export --to svg`.";

std::string refusalOf(const std::string& picture) {
  const Result<std::string> text = pipelineIn(picture);
  return text ? "accepted: " + *text : text.error().message;
}

TEST(Picture, KeepsAnyText) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::arbitrary<std::string>();
    for (const std::string& picture : {kPng, kSvg}) {
      const Result<std::string> read = pipelineIn(withPipeline(picture, text));
      RC_ASSERT(read.hasValue());
      RC_ASSERT(*read == text);
    }
  }));
}

TEST(Picture, StaysTheOneItWas) {
  const std::string svg = withPipeline(kSvg, "</svg><script>&");
  EXPECT_EQ(svg.substr(0, kSvg.find("</svg>")), kSvg.substr(0, kSvg.find("</svg>")));
  EXPECT_NE(svg.find("&lt;/svg&gt;&lt;script&gt;&amp;</fuseline-pipeline></metadata>\n</svg>\n"), std::string::npos);
  const std::string png = withPipeline(kPng, "{}");
  EXPECT_EQ(png.substr(0, 33), kPng.substr(0, 33)) << "signature and header";
  EXPECT_EQ(png.substr(png.size() - 34), kPng.substr(33)) << "pixels and end";
}

TEST(Picture, WithoutAPipelineSaysWhichHaveOne) {
  EXPECT_EQ(refusalOf(kPng), "This drawing contains no pipeline." + kOrigin);
  EXPECT_EQ(refusalOf(kSvg), "This drawing contains no pipeline." + kOrigin);
}

TEST(Picture, ThatIsDamagedIsRefused) {
  std::string png = withPipeline(kPng, "{\"a\": 1}");
  png[png.find("\"a\"") + 1] = 'b';
  EXPECT_EQ(refusalOf(png), "The pipeline in this drawing is damaged: its checksum does not match." + kOrigin);
  const std::string svg = withPipeline(kSvg, "{\"a\": 1}");
  EXPECT_EQ(refusalOf(svg.substr(0, svg.find("</fuse"))),
            "The pipeline in this drawing is damaged: its end is missing." + kOrigin);
  EXPECT_EQ(refusalOf("<svg><fuseline-pipeline>{<b/>}</fuseline-pipeline></svg>"),
            "The pipeline in this drawing is damaged: it contains markup." + kOrigin);
}

TEST(Picture, EndsWhereItsBytesEnd) {
  const std::string whole = withPipeline(kPng, "{\"a\": 1}");
  for (std::size_t size = 0; size < whole.find("IDAT") - 4; ++size)
    EXPECT_FALSE(pipelineIn(whole.substr(0, size))) << size;
  std::string png = kPng;
  png[33] = '\xFF';  // a chunk of nearly 4 GiB
  EXPECT_EQ(refusalOf(png), "This drawing contains no pipeline." + kOrigin);
}

TEST(Picture, IsKnownByItsBeginning) {
  EXPECT_EQ(pictureKindOf(kPng), PictureKind::Png);
  EXPECT_EQ(pictureKindOf("\xEF\xBB\xBF <!-- by hand --><svg>"), PictureKind::Svg);
  EXPECT_EQ(pictureKindOf("<!doctype html><html><svg></svg>"), std::nullopt);
  EXPECT_EQ(pictureKindOf(R"({"format": "<svg"})"), std::nullopt);
  EXPECT_EQ(pictureKindOf(""), std::nullopt);
}

TEST(Picture, IsReadAsThePipelineItShows) {
  const TemporaryFolder folder;
  const std::string text = documentTemplates().front().text;
  ASSERT_TRUE(writeFileAtomically(folder / "a.png", [&](auto& file) { file << withPipeline(kPng, text); }));
  ASSERT_TRUE(writeFileAtomically(folder / "b.svg", [](auto& file) { file << kSvg; }));
  const Result<LoadedDocument> loaded = loadDocument(folder / "a.png");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->document, parseDocument(text).document);
  EXPECT_EQ(loadDocument(folder / "b.svg").error().message,
            (folder / "b.svg").string() + ": This drawing contains no pipeline." + kOrigin);
}

}  // namespace
}  // namespace fuseline
