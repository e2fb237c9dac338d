// The convolution over patches has their size as its stride: it is a linear op on the pixels of each patch.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/image_text.h"

#include "core/document/json_text.h"
#include "core/ops/operation.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

struct PatchSizes {
  std::int64_t channels;
  std::array<std::int64_t, 2> patch, image;  // rows, columns
};

PatchSizes patchSizes(const ModelConfig& config) {
  return {config.count("num_channels", 3), config.sides("patch_size", 16), config.sides("image_size", 224)};
}

/// As PyTorch takes it: 16, or (16, 8).
std::string sidesText(const std::array<std::int64_t, 2>& sides) {
  return sides[0] == sides[1] ? std::to_string(sides[0]) : fmt::format("({}, {})", sides[0], sides[1]);
}

/// The number of patches, in terms of S.
std::string numPatches(const ImageForm& image) {
  return image.classTokens > 0 ? fmt::format("S - {}", image.classTokens) : "S";
}

std::string reshaped(SectionText& text, const char* id, Json shape, const std::string& x) {
  return text.add(id, "Reshape", {{"shape", std::move(shape)}}, x);
}

/// The same rows of a learned table for each image: [B, count, H].
std::string learnedTokens(const ModelForm& form, SectionText& text, const std::string& id, const std::string& ids,
                          std::int64_t count) {
  text.addInput({{"id", ids}, {"dtype", "i64"}, {"shape", {"B", count}}});
  return text.add(id, "Embedding",
                  {{"num_embeddings", count},
                   {"embedding_dim", "H"},
                   {"dtype", std::string(dtypeName(form.dtype))},
                   {"positions", true}},
                  ids);
}

/// The learned tokens of each image before its patches: [B, S * H]. patches: [B, N, H].
std::string withClassTokens(const ModelForm& form, SectionText& text, const std::string& patches) {
  const ImageForm& image = *form.image;
  const std::string rows = reshaped(text, "patch_rows", {"B", fmt::format("({}) * H", numPatches(image))}, patches);
  if (image.classTokens == 0) return rows;
  const std::string tokens = learnedTokens(form, text, "class_tokens", "class_token_ids", image.classTokens);
  const std::string first = reshaped(text, "class_rows", {"B", fmt::format("{} * H", image.classTokens)}, tokens);
  return text.add("tokens", "Concat", Json::object(), {{"x", first}, {"x1", rows}});
}

}  // namespace

void readImage(const ModelConfig& config, std::int64_t classTokens, ModelForm& form) {
  const PatchSizes sizes = patchSizes(config);
  const auto& [rows, columns] = sizes.patch;
  if (sizes.image[0] < rows || sizes.image[1] < columns)
    config.refuse("image_size", fmt::format("at least patch_size, {}", sidesText(sizes.patch)));
  form.image = ImageForm{.patchElements = saturatedProduct(sizes.channels, rows * columns), .classTokens = classTokens};
  const std::int64_t patches = (sizes.image[0] / rows) * (sizes.image[1] / columns);
  form.tokens = std::max<std::int64_t>(1, patches) + classTokens;
  form.head = ModelHead::None;
  form.notes.push_back(
      fmt::format("Input patches is torch.nn.functional.unfold(images, {0}, stride={0}).transpose(1, 2).{1}",
                  sidesText(sizes.patch), classTokens > 0 ? " The values of class_token_ids are not read." : ""));
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

std::string addPoolingHead(const ModelForm& form, SectionText& text, const std::string& x) {
  const auto linear = [&](const std::string& id, const std::string& from, const char* in, const char* out) {
    return text.add(id, "Linear", {{"in_features", in}, {"out_features", out}}, from);
  };
  const std::string q = linear("pool_q", learnedTokens(form, text, "probe", "probe_ids", 1), "H", "H");
  text.add("pool_split", "Split", {{"sizes", {"H", "H"}}}, linear("pool_kv", x, "H", "2 * H"));
  const Json attention = {
      {"num_attention_heads", "heads"}, {"kv_channels", {"D"}}, {"qkv_format", "bshd"}, {"attn_mask_type", "no_mask"}};
  const std::string y = text.add("pool_attention", "DotProductAttention", attention,
                                 {{"x", q}, {"k", "pool_split.y"}, {"v", "pool_split.y1"}});
  const std::string saved =
      text.add("pool_save", "MakeExtraOutput", {{"in_place", false}}, linear("pool_proj", y, "H", "H"));
  const std::string normed =
      text.add("pool_norm", form.norm.op, {{"normalized_shape", {"H"}}, {"eps", form.norm.eps}}, saved);
  const std::string active =
      text.add("pool_act", form.activation, form.activationAttributes, linear("pool_fc1", normed, "H", "F"));
  const std::string sum = text.add("pool_add", "AddExtraInput", {{"in_place", true}},
                                   {{"x", linear("pool_fc2", active, "F", "H")}, {"extra", "pool_save.extra"}});
  return reshaped(text, "pooled_rows", {"B", "H"}, sum);
}

void addImageSymbols(const ImageForm& image, Json& symbols) {
  symbols["patch"] = image.patchElements;
  if (image.classes > 0) symbols["classes"] = image.classes;
}

void addPatchWeights(const ModelConfig& config, const PatchTensors& tensors, ModelForm& form) {
  const PatchSizes sizes = patchSizes(config);
  form.weights.push_back({.parameter = "patch_embed.weight",
                          .tensors = {tensors.convolution + ".weight"},
                          .shape = {form.hidden, sizes.channels, sizes.patch[0], sizes.patch[1]}});
  form.weights.push_back({.parameter = "patch_embed.bias", .tensors = {tensors.convolution + ".bias"}});
  form.weights.push_back(
      {.parameter = "positions.bias", .tensors = {tensors.positions}, .shape = tensors.positionShape});
}

}  // namespace fuseline
