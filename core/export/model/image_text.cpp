// The convolution over patches has their size as its stride: it is a linear op on the pixels of each patch.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/image_text.h"

#include "core/document/json_text.h"
#include "core/ops/operation.h"
#include "core/support/visible_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

struct PatchSizes {
  std::int64_t channels, patch, image;
};

PatchSizes patchSizes(const ModelConfig& config) {
  return {config.count("num_channels", 3), config.count("patch_size", 16), config.count("image_size", 224)};
}

/// The number of patches, in terms of S.
std::string numPatches(const ImageForm& image) {
  return image.classTokens > 0 ? fmt::format("S - {}", image.classTokens) : "S";
}

std::string reshaped(SectionText& text, const char* id, Json shape, const std::string& x) {
  return text.add(id, "Reshape", {{"shape", std::move(shape)}}, x);
}

/// The learned tokens of each image before its patches: [B, S * H]. patches: [B, N, H].
std::string withClassTokens(const ModelForm& form, SectionText& text, const std::string& patches) {
  const ImageForm& image = *form.image;
  const std::string rows = reshaped(text, "patch_rows", {"B", fmt::format("({}) * H", numPatches(image))}, patches);
  if (image.classTokens == 0) return rows;
  text.addInput({{"id", "class_token_ids"}, {"dtype", "i64"}, {"shape", {"B", image.classTokens}}});
  const Json table = {{"num_embeddings", image.classTokens},
                      {"embedding_dim", "H"},
                      {"dtype", std::string(dtypeName(form.dtype))},
                      {"positions", true}};
  const std::string tokens = text.add("class_tokens", "Embedding", table, "class_token_ids");
  const std::string first = reshaped(text, "class_rows", {"B", fmt::format("{} * H", image.classTokens)}, tokens);
  return text.add("tokens", "Concat", Json::object(), {{"x", first}, {"x1", rows}});
}

}  // namespace

void readImage(const ModelConfig& config, std::int64_t classTokens, ModelForm& form) {
  const PatchSizes sizes = patchSizes(config);
  if (sizes.image < sizes.patch) config.refuse("image_size", fmt::format("at least patch_size, {}", sizes.patch));
  const std::int64_t side = std::max<std::int64_t>(1, sizes.image / sizes.patch);
  form.image = ImageForm{.patchElements = saturatedProduct(sizes.channels, sizes.patch * sizes.patch),
                         .classTokens = classTokens};
  form.tokens = side * side + classTokens;
  form.head = ModelHead::None;
  form.notes.push_back(
      fmt::format("Input patches is torch.nn.functional.unfold(images, {0}, stride={0}).transpose(1, 2).{1}",
                  sizes.patch, classTokens > 0 ? " The values of class_token_ids are not read." : ""));
}

void readClasses(const ModelConfig& config, ModelForm& form) {
  constexpr std::int64_t kDefaultClasses = 2;
  const std::vector<std::string> names = config.texts("architectures");
  const auto isClassifier = [](const std::string& name) { return name.ends_with("ForImageClassification"); };
  const ModelConfig labels = config.section("id2label");
  const std::int64_t classes = config.count("num_labels", labels.isEmpty() ? kDefaultClasses : labels.size());
  if (!names.empty() && std::ranges::none_of(names, isClassifier)) {
    form.notes.push_back(fmt::format("The pipeline ends with the last norm, without the head of {}.",
                                     shortened(visibleText(names.front()))));
    return;
  }
  form.image->classes = classes;
  form.head = ModelHead::Classifier;
}

std::string addPatches(const ModelForm& form, SectionText& text) {
  text.addInput({{"id", "patches"},
                 {"dtype", std::string(dtypeName(form.dtype))},
                 {"shape", {"B", numPatches(*form.image), "patch"}},
                 {"requires_grad", false}});
  const std::string x = text.add("patch_embed", "Linear", {{"in_features", "patch"}, {"out_features", "H"}}, "patches");
  const std::string tokens = withClassTokens(form, text, x);
  return reshaped(text, "embedded", {"B", "S", "H"}, text.add("positions", "Bias", {{"size", "S * H"}}, tokens));
}

std::string addClassifier(SectionText& text, const std::string& x) {
  const std::string rows = reshaped(text, "token_rows", {"B", "S * H"}, x);
  const std::string first = text.add("first_token", "Split", {{"sizes", {"H", "(S - 1) * H"}}}, rows);
  return text.add("head", "Linear", {{"in_features", "H"}, {"out_features", "classes"}}, first);
}

void addImageSymbols(const ImageForm& image, Json& symbols) {
  symbols["patch"] = image.patchElements;
  if (image.classes > 0) symbols["classes"] = image.classes;
}

void addPatchWeights(const ModelConfig& config, const PatchTensors& tensors, ModelForm& form) {
  const PatchSizes sizes = patchSizes(config);
  form.weights.push_back({.parameter = "patch_embed.weight",
                          .tensors = {tensors.convolution + ".weight"},
                          .shape = {form.hidden, sizes.channels, sizes.patch, sizes.patch}});
  form.weights.push_back({.parameter = "patch_embed.bias", .tensors = {tensors.convolution + ".bias"}});
  form.weights.push_back(
      {.parameter = "positions.bias", .tensors = {tensors.positions}, .shape = tensors.positionShape});
}

}  // namespace fuseline
