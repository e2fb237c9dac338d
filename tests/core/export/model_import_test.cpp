// Configs of models as pipelines: what layers and ops they become, and how bad ones are refused.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_import.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/export/any_document.h"
#include "core/export/model/model_architectures.h"
#include "core/export/model/model_files.h"
#include "core/export/model/weight_files.h"
#include "core/export/model/weight_map.h"
#include "core/lowering/lowering.h"
#include "core/runtime/bindings.h"
#include "core/support/read_file.h"
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

Json small(const char* modelType) {
  return {{"model_type", modelType},  {"vocab_size", 61},       {"hidden_size", 48},
          {"intermediate_size", 80},  {"num_hidden_layers", 4}, {"num_attention_heads", 6},
          {"num_key_value_heads", 2}, {"head_dim", 16},         {"max_position_embeddings", 64}};
}

Json with(Json config, const Json& more) {
  config.update(more);
  return config;
}

ImportedPipeline imported(const Json& config, const ModelImportOptions& options = {}) {
  Result<ImportedPipeline> result = importModelConfig(config.dump(), "config.json", options);
  if (!result) throw std::invalid_argument(result.error().message);
  return std::move(*result);
}

std::string refusal(const Json& config, const ModelImportOptions& options = {}) {
  const Result<ImportedPipeline> result = importModelConfig(config.dump(), "config.json", options);
  return result ? "no refusal" : result.error().message;
}

std::vector<std::string> layersOf(const PipelineDocument& document) {
  std::vector<std::string> blocks;
  for (const DocumentOp& op : document.ops())
    if (op.operation.starts_with("block:")) blocks.push_back(op.operation.substr(6));
  return blocks;
}

const DocumentOp& opOf(const ImportedPipeline& pipeline, const char* block, std::string_view id) {
  for (const DocumentOp& op : pipeline.document.findBlock(block)->ops)
    if (op.id == id) return op;
  throw std::invalid_argument(std::string(id));
}

using Names = std::vector<std::string>;

const Json kImages = {{"model_type", "vit"}, {"hidden_size", 8}, {"intermediate_size", 16}, {"num_hidden_layers", 1},
                      {"image_size", 6},     {"patch_size", 2},  {"num_attention_heads", 2}};

TEST(ModelImport, MakesInstancesOfOneBlock) {
  const ImportedPipeline pipeline = imported(small("llama"));
  EXPECT_EQ(layersOf(pipeline.document), Names(4, "Layer"));
  EXPECT_EQ(pipeline.document.blocks().size(), 1U);
  EXPECT_EQ(pipeline.document.symbols()["S"], 64);
  EXPECT_TRUE(pipeline.notes.empty());
}

/// As the window and all verbs open it.
TEST(ModelImport, OpensLikeAPipelineFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.json") << small("llama").dump();
  for (const std::filesystem::path& path : {folder / "config.json", folder.path()}) {
    const Result<LoadedDocument> loaded = loadOrImportDocument(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(loaded->isTakenOut);
    EXPECT_EQ(layersOf(loaded->document), Names(4, "Layer"));
  }
  std::ofstream(folder / "config.json") << R"({"model_type": "llama",)";
  const Result<LoadedDocument> damaged = loadOrImportDocument(folder / "config.json");
  EXPECT_NE((damaged ? "no error" : damaged.error().message).find("config.json:1:"), std::string::npos);
}

TEST(ModelImport, TakesTheFirstLayersOnly) {
  EXPECT_EQ(layersOf(imported(small("llama"), {.layers = 2}).document), Names(2, "Layer"));
  EXPECT_NE(refusal(small("llama"), {.layers = 5}).find("--layers is 5, but the model has 4 layers"),
            std::string::npos);
}

TEST(ModelImport, HasABlockForEachKindOfLayers) {
  EXPECT_EQ(layersOf(imported(small("gemma2")).document),
            (Names{"SlidingLayer", "FullLayer", "SlidingLayer", "FullLayer"}));
  const Json windows = {{"use_sliding_window", true}, {"max_window_layers", 3}, {"sliding_window", 8}};
  EXPECT_EQ(layersOf(imported(with(small("qwen2"), windows)).document),
            (Names{"FullLayer", "FullLayer", "FullLayer", "SlidingLayer"}));
}

/// transformers keeps the last W keys, the query's own included; TransformerEngine counts those to the left.
TEST(ModelImport, CountsTheKeysOfAWindowToTheLeft) {
  const ImportedPipeline pipeline = imported(with(small("mistral"), {{"sliding_window", 8}}));
  EXPECT_EQ(opOf(pipeline, "Layer", "attention").attributes["window_size"], (Json{7, 0}));
}

TEST(ModelImport, ReadsTheKeysOfBothGenerations) {
  const Json scaling = {{"factor", 8.0}, {"original_max_position_embeddings", 16}, {"low_freq_factor", 1.0}};
  Json old = with(small("llama"), {{"rope_theta", 5e5}});
  old["rope_scaling"] = with(scaling, {{"type", "llama3"}});
  Json present = small("llama");
  present["rope_parameters"] = with(scaling, {{"rope_type", "llama3"}, {"rope_theta", 5e5}});
  EXPECT_EQ(imported(old).document, imported(present).document);
  EXPECT_EQ(opOf(imported(old), "Layer", "rope_q").attributes["rope_type"], "llama3");
}

TEST(ModelImport, ReadsTheTextModelOfSeveralModalities) {
  const Json config = {
      {"model_type", "gemma3"}, {"text_config", small("gemma3_text")}, {"vision_config", Json::object()}};
  EXPECT_EQ(layersOf(imported(config).document).size(), 4U);
}

TEST(ModelImport, ReadsTheImageModelWhereTheTextModelIsNotKnown) {
  const Json config = {{"model_type", "siglip"},
                       {"text_config", {{"model_type", "siglip_text_model"}}},
                       {"vision_config", with(kImages, {{"model_type", "siglip_vision_model"}})}};
  const ImportedPipeline pipeline = imported(config);
  EXPECT_EQ(pipeline.document.outputs().front().id, "pooled");
  EXPECT_EQ(pipeline.notes.back(), "Only vision_config of the model was imported.");
}

TEST(ModelImport, ListsKeysThatItDoesNotKnow) {
  const ImportedPipeline pipeline = imported(with(small("llama"), {{"logit_bias", 1}, {"moe", true}}));
  ASSERT_EQ(pipeline.notes.size(), 1U);
  EXPECT_EQ(pipeline.notes[0], "These keys are not known and change nothing: logit_bias, moe.");
}

/// Architectures share readers, which know more keys than each has.
TEST(ModelImport, ListsKeysThatOnlyOtherArchitecturesHave) {
  const auto noteOf = [](const Json& config) { return imported(config).notes.front(); };
  EXPECT_NE(noteOf(small("gpt_neox")).find("change nothing: num_key_value_heads, head_dim."), std::string::npos);
  EXPECT_NE(noteOf(with(small("qwen2"), {{"mlp_bias", true}})).find("changes nothing: mlp_bias."), std::string::npos);
  EXPECT_NE(noteOf(with(small("llama"), {{"layer_types", {"sliding_attention"}}})).find("layer_types"),
            std::string::npos);
  EXPECT_NE(refusal(with(small("gemma"), {{"use_bidirectional_attention", true}})).find("expected false"),
            std::string::npos);
}

TEST(ModelImport, SaysThatDropoutIsLeftOut) {
  const ImportedPipeline pipeline = imported(with(small("llama"), {{"attention_dropout", 0.1}}));
  ASSERT_EQ(pipeline.notes.size(), 1U);
  EXPECT_NE(pipeline.notes[0].find("no dropout, but the config has attention_dropout"), std::string::npos);
}

const Json kExperts = {{"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 24}};

TEST(ModelImport, GivesLayersExpertsButThoseThatAreNamed) {
  const Json some = {{"decoder_sparse_step", 2}, {"mlp_only_layers", Json::array({3})}};
  const ImportedPipeline pipeline = imported(with(with(small("qwen3_moe"), kExperts), some));
  EXPECT_EQ(layersOf(pipeline.document), (Names{"DenseLayer", "Layer", "DenseLayer", "DenseLayer"}));
  EXPECT_EQ(opOf(pipeline, "Layer", "experts_fc1").operation, "GroupedLinear");
  EXPECT_EQ(opOf(pipeline, "DenseLayer", "fc1").operation, "Linear");
  EXPECT_EQ(pipeline.document.symbols()["FE"], 24);
}

TEST(ModelImport, RefusesExpertsThatDoNotFitAndMissingOps) {
  Json config = with(small("qwen3_moe"), kExperts);
  config["num_experts_per_tok"] = 9;
  EXPECT_NE(refusal(config).find("expected at most num_experts, 8"), std::string::npos) << refusal(config);
  EXPECT_NE(refusal(with(small("qwen3_moe"), {{"mlp_only_layers", -1}})).find("missing"), std::string::npos);
}

const Json kLatent = {
    {"kv_lora_rank", 16},          {"qk_nope_head_dim", 12},    {"qk_rope_head_dim", 8}, {"v_head_dim", 10},
    {"n_routed_experts", 8},       {"num_experts_per_tok", 4},  {"n_group", 4},          {"topk_group", 2},
    {"moe_intermediate_size", 24}, {"first_k_dense_replace", 1}};

/// The ops with their attributes and inputs, and the outputs.
Names opsOf(const LoweredGraph& lowered) {
  Names ops;
  for (const Node& node : lowered.graph.nodes()) {
    ops.push_back(fmt::format("{} {} {}", node.id, node.operation->name,
                              node.attributes.has("num_layers") ? node.attributes.integer("num_layers") : 0));
    for (const ValueId input : node.inputs) ops.back() += " " + lowered.graph.value(input).name;
  }
  for (const GraphOutput& output : lowered.graph.outputs())
    ops.push_back(output.name + " " + lowered.graph.value(output.value).name);
  return ops;
}

/// Full and sliding layers alternate, the first layer is dense, all layers with experts have one loss.
TEST(ModelImport, SetsTheNumberOfLayersByASymbol) {
  const Json loss = {{"output_router_logits", true}, {"router_aux_loss_coef", 0.01}};
  const Json dense = {{"mlp_only_layers", {0, 2}}};
  for (const Json& config :
       {small("llama"), small("gemma2"), with(small("deepseek_v3"), kLatent), with(kImages, {{"num_hidden_layers", 3}}),
        with(with(small("qwen3_moe"), kExperts), loss), with(with(with(small("qwen3_moe"), kExperts), loss), dense)}) {
    const PipelineDocument document = imported(config).document;
    const int layers = document.symbols()["layers"];
    for (int used = 1; used <= layers; ++used) {
      const LoweredGraph first = lower(document, {.symbols = {{"layers", used}}});
      EXPECT_FALSE(hasErrors(first.diagnostics)) << config << used << first.diagnostics.front().message;
      EXPECT_EQ(opsOf(first), opsOf(lower(imported(config, {.layers = used}).document))) << config << used;
    }
    for (const int wrong : {0, -1, layers + 1}) {
      const LoweredGraph refused = lower(document, {.symbols = {{"layers", wrong}}});
      ASSERT_TRUE(hasErrors(refused.diagnostics));
      EXPECT_NE(refused.diagnostics.front().message.find(fmt::format("expected 1 to {}.", layers)), std::string::npos);
    }
  }
}

/// Routers of layers have extra outputs.
TEST(ModelImport, RefusesFewerLayersWhereALaterOneIsRead) {
  PipelineDocument document =
      imported(with(with(small("qwen3_moe"), kExperts), {{"output_router_logits", true}})).document;
  ASSERT_TRUE(applyEdit(document, AddOutput{{.id = "logits", .from = {"layer3", "router_logits"}}}));
  EXPECT_FALSE(hasErrors(lower(document).diagnostics));
  ASSERT_TRUE(applyEdit(document, SetSymbol{"layers", 3}));
  const LoweredGraph lowered = lower(document);
  const auto error = std::ranges::find(lowered.diagnostics, Severity::Error, &Diagnostic::severity);
  ASSERT_NE(error, lowered.diagnostics.end());
  EXPECT_EQ(error->message, "layers is 3, so layer3 is left out, but output logits consumes layer3.router_logits.");
  ASSERT_TRUE(applyEdit(document, error->repairs.front().edit));
  EXPECT_FALSE(hasErrors(lower(document).diagnostics));
}

TEST(ModelImport, WritesLatentAttentionAsOps) {
  const ImportedPipeline pipeline = imported(with(small("deepseek_v3"), kLatent));
  EXPECT_EQ(layersOf(pipeline.document), (Names{"DenseLayer", "Layer", "Layer", "Layer"}));
  EXPECT_EQ(opOf(pipeline, "Layer", "attention").attributes["kv_channels"], (Json{"DN + DR", "DV"}));
  EXPECT_EQ(opOf(pipeline, "Layer", "k_shared").operation, "Expand");
  EXPECT_EQ(opOf(pipeline, "Layer", "rope_q").attributes["interleaved"], true);
  const Json router = opOf(pipeline, "Layer", "route").attributes;
  EXPECT_EQ(router["num_groups"], 4);
  EXPECT_EQ(router["expert_bias"], true);
}

TEST(ModelImport, ClassifiesImagesByTheirFirstToken) {
  const ImportedPipeline pipeline = imported(with(kImages, {{"id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}}}));
  EXPECT_EQ(pipeline.document.symbols()["S"], 10);
  EXPECT_EQ(pipeline.document.symbols()["patch"], 12);
  EXPECT_EQ(pipeline.document.symbols()["classes"], 3);
  EXPECT_NE(pipeline.notes.front().find("unfold(images, 2, stride=2)"), std::string::npos);
  EXPECT_EQ(imported(with(kImages, {{"architectures", {"ViTModel"}}})).document.outputs().front().id, "y");
  EXPECT_NE(refusal(with(kImages, {{"image_size", 1}})).find("image_size is 1; expected at least patch_size, 2"),
            std::string::npos);
}

TEST(ModelImport, TakesImagesAndPatchesWithSides) {
  const ImportedPipeline pipeline = imported(with(kImages, {{"image_size", {6, 8}}, {"patch_size", {2, 4}}}));
  EXPECT_EQ(pipeline.document.symbols()["S"], 7);
  EXPECT_EQ(pipeline.document.symbols()["patch"], 24);
  EXPECT_NE(pipeline.notes.front().find("unfold(images, (2, 4), stride=(2, 4))"), std::string::npos);
  for (const Json& sides : {Json{6}, Json{6, 8, 3}, Json{6, "8"}, Json{6, 0}, Json::object()})
    EXPECT_NE(refusal(with(kImages, {{"image_size", sides}})).find("or a list of two"), std::string::npos) << sides;
  EXPECT_NE(refusal(with(kImages, {{"image_size", {6, 1}}})).find("at least patch_size, 2"), std::string::npos);
}

/// TopKRouter adds as many scores of a group as it takes experts of one; the models add two, or take the largest.
TEST(ModelImport, RefusesRoutersThatNoOpHas) {
  const Json three = {{"num_experts_per_tok", 3}};
  EXPECT_NE(refusal(with(with(small("deepseek_v3"), kLatent), three)).find("half of num_experts_per_tok"),
            std::string::npos);
  EXPECT_NE(refusal(with(with(small("deepseek_v3"), kLatent), {{"scoring_func", "relu"}})).find("expected sigmoid"),
            std::string::npos);
  EXPECT_NE(refusal(with(with(small("deepseek_v2"), kLatent), {{"topk_method", "group_limited_greedy"}}))
                .find("expected greedy"),
            std::string::npos);
  EXPECT_NE(refusal(small("deepseek_v3")).find("kv_lora_rank is missing"), std::string::npos);
}

TEST(ModelImport, RefusesAnUnknownArchitectureWithThePageOfThoseItKnows) {
  const std::string message = refusal(small("lama"));
  EXPECT_NE(message.find("model_type lama is not supported; did you mean llama?"), std::string::npos) << message;
  EXPECT_NE(message.find("`fuseline guide models` lists"), std::string::npos) << message;
  const auto page = readWholeFile(std::filesystem::path(FUSELINE_SOURCE_DIR) / "resources/guide/models.md", {"page"});
  for (const std::string& type : knownModelTypes()) EXPECT_NE(page->find(type), std::string::npos) << type;
  EXPECT_NE(refusal({{"hidden_size", 4}}).find("model_type is missing"), std::string::npos);
}

TEST(ModelImport, RefusesValuesThatDoNotFitWithPlaceAndValue) {
  const std::pair<Json, const char*> cases[] = {
      {{{"num_hidden_layers", "many"}}, "num_hidden_layers is \"many\"; expected a whole number from 1"},
      {{{"num_hidden_layers", 1000000000}}, "num_hidden_layers is 1000000000"},
      {{{"num_hidden_layers", 100000}}, "expected at most 1000 layers"},
      {{{"hidden_size", 0}}, "hidden_size is 0"},
      {{{"hidden_size", -3.5}}, "hidden_size is -3.5"},
      {{{"num_key_value_heads", 4}}, "num_key_value_heads is 4; expected a divisor of num_attention_heads, 6"},
      {{{"hidden_act", "softmax"}}, "hidden_act is \"softmax\"; expected one of silu"},
      {{{"rope_scaling", {{"rope_type", "spiral"}}}}, "rope_scaling.rope_type is \"spiral\"; expected default"},
      {{{"rope_scaling", {{"rope_type", "longrope"}, {"short_factor", {1, "a"}}}}},
       "rope_scaling.short_factor is [1,\"a\"]; expected a list of numbers"},
      {{{"rope_scaling", {{"type", "linear"}}}}, "rope_scaling.factor is missing; expected a finite number"},
      {{{"rope_scaling", "linear"}}, "rope_scaling is \"linear\"; expected an object"},
      {{{"partial_rotary_factor", 2}}, "partial_rotary_factor is 2"},
      {{{"torch_dtype", "int8"}}, "torch_dtype is \"int8\"; expected float32"},
      {{{"rms_norm_eps", nullptr}, {"tie_word_embeddings", 1}}, "tie_word_embeddings is 1; expected true or false"}};
  for (const auto& [change, expected] : cases) {
    const std::string message = refusal(with(small("llama"), change));
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(message.find("config.json: "), 0U) << message;
  }
}

TEST(ModelImport, RefusesTextThatIsNoObject) {
  for (const char* text : {"", "[1]", "{\"model_type\": ", "llama"}) {
    const Result<ImportedPipeline> result = importModelConfig(text, "config.json");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().message.find("config.json:1:"), 0U) << result.error().message;
  }
}

// ---- weights

class ModelWeights : public ::testing::Test {
 protected:
  void write(const char* name, const std::string& text) { std::ofstream(m_folder.path() / name) << text; }
  std::string problem(const Json& config = small("llama")) {
    const ImportedPipeline pipeline = imported(config, {.weights = m_folder.path()});
    return pipeline.weightsProblem ? pipeline.weightsProblem->message : "no problem";
  }
  TemporaryFolder m_folder;
};

TEST_F(ModelWeights, AreMissedInAnEmptyFolder) {
  EXPECT_NE(problem().find("the folder has no safetensors file"), std::string::npos);
}

TEST_F(ModelWeights, AreNotTakenFromOutsideTheFolderOfTheIndex) {
  for (const char* file : {"\"../secret.safetensors\"", "\"/etc/passwd\"", "\"\"", "\"..\"", "7"}) {
    write("model.safetensors.index.json",
          R"({"weight_map": {"model.embed_tokens.weight": )" + std::string(file) + "}}");
    EXPECT_NE(problem().find("expected the name of a file in the same folder"), std::string::npos) << problem();
  }
  write("model.safetensors.index.json", "{}");
  EXPECT_NE(problem().find("expected a JSON object with weight_map"), std::string::npos);
}

TEST_F(ModelWeights, OfAnotherShapeAreRefusedWithBoth) {
  const NamedTensors tensors = {{"model.embed_tokens.weight", Tensor::zeros({DType::F32, {60, 48}})}};
  ASSERT_TRUE(writeSafetensors(m_folder.path() / "model.safetensors", tensors));
  const std::string message = problem();
  EXPECT_NE(message.find("embed.weight: the tensor model.embed_tokens.weight is [60, 48], but the pipeline needs "
                         "[61, 48]"),
            std::string::npos)
      << message;
}

TEST_F(ModelWeights, ThatAreMissingAreNamed) {
  const NamedTensors tensors = {{"model.embed_tokens.weight", Tensor::zeros({DType::F32, {61, 48}})}};
  ASSERT_TRUE(writeSafetensors(m_folder.path() / "model.safetensors", tensors));
  EXPECT_NE(problem().find("there is no tensor model.layers.0.input_layernorm.weight"), std::string::npos);
}

/// As the files of GPT-2 name and store them, and one input.
TEST_F(ModelWeights, UnderTheModelsOwnNamesAreReadForARun) {
  const Json config = {{"model_type", "gpt2"}, {"vocab_size", 5}, {"n_embd", 4},
                       {"n_head", 1},          {"n_layer", 1},    {"n_positions", 4}};
  const PipelineDocument document = parseDocument(serialize(imported(config).document)).document;
  NamedTensors tensors = {{"input_ids", Tensor::zeros({DType::I64, {1, 4}})}};
  const auto add = [&](const std::string& name, const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(TensorSpec{DType::F32, shape}.numElements()));
    std::ranges::generate(values, [value = 0.0]() mutable { return value++; });
    tensors.emplace_back("transformer." + name, Tensor::fromDoubles({DType::F32, shape}, values));
  };
  add("wte.weight", {5, 4});
  add("wpe.weight", {4, 4});
  for (const char* const norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"})
    for (const char* const parameter : {".weight", ".bias"}) add(norm + std::string(parameter), {4});
  const std::pair<const char*, Shape> linears[] = {
      {"attn.c_attn", {4, 12}}, {"attn.c_proj", {4, 4}}, {"mlp.c_fc", {4, 16}}, {"mlp.c_proj", {16, 4}}};
  for (const auto& [name, shape] : linears) {
    add(fmt::format("h.0.{}.weight", name), shape);
    add(fmt::format("h.0.{}.bias", name), {shape[1]});
  }
  const std::filesystem::path file = m_folder.path() / "gpt2.safetensors";
  ASSERT_TRUE(writeSafetensors(file, tensors));
  const Result<NamedTensors> read = readTensors(document, file);
  ASSERT_TRUE(read) << read.error().message;
  const std::map<std::string, Tensor> found(read->begin(), read->end());
  EXPECT_EQ(found.at("layer0.qkv.weight").spec.shape, (Shape{12, 4}));
  EXPECT_EQ(found.at("layer0.qkv.weight").toDoubles()[1], 12.0);  // row 1 of the stored [4, 12]
  EXPECT_EQ(found.at("input_ids").spec.shape, (Shape{1, 4}));
  EXPECT_EQ(found.size(), tensors.size());
}

/// Blocks of 32 values, two a byte, with exponents. Rows 0 and 1 of each expert are a gate and its up.
TEST_F(ModelWeights, InMxfp4AreDecodedForARun) {
  const Json config = {{"model_type", "gpt_oss"},    {"vocab_size", 5},         {"hidden_size", 32},
                       {"intermediate_size", 32},    {"num_hidden_layers", 1},  {"num_attention_heads", 1},
                       {"num_key_value_heads", 1},   {"head_dim", 32},          {"num_local_experts", 2},
                       {"num_experts_per_tok", 1},   {"attention_bias", false}, {"layer_types", {"full_attention"}},
                       {"tie_word_embeddings", true}};
  const PipelineDocument document = parseDocument(serialize(imported(config).document)).document;
  const std::string layer = "model.layers.0.", mlp = layer + "mlp.", attention = layer + "self_attn.";
  NamedTensors tensors = {{"model.embed_tokens.weight", Tensor::zeros({DType::BF16, {5, 32}})},
                          {attention + "sinks", Tensor::zeros({DType::BF16, {1}})},
                          {mlp + "router.weight", Tensor::zeros({DType::BF16, {2, 32}})},
                          {mlp + "router.bias", Tensor::zeros({DType::BF16, {2}})},
                          {mlp + "experts.gate_up_proj_bias", Tensor::zeros({DType::BF16, {2, 64}})},
                          {mlp + "experts.down_proj_bias", Tensor::zeros({DType::BF16, {2, 32}})}};
  for (const char* const part : {"q_proj", "k_proj", "v_proj", "o_proj"})
    tensors.emplace_back(attention + part + ".weight", Tensor::zeros({DType::BF16, {32, 32}}));
  for (const std::string& norm :
       {layer + "input_layernorm", layer + "post_attention_layernorm", std::string("model.norm")})
    tensors.emplace_back(norm + ".weight", Tensor::zeros({DType::BF16, {32}}));
  for (const auto& [name, rows] : {std::pair("gate_up_proj", 64), std::pair("down_proj", 32)}) {
    Tensor blocks = Tensor::zeros({DType::U8, {2, rows, 1, 16}}), scales = Tensor::zeros({DType::U8, {2, rows, 1}});
    std::ranges::fill(scales.data, std::byte{128});  // 2
    blocks.data[0] = std::byte{0x7F};                // row 0: -6, then 6
    blocks.data[16] = std::byte{0x21};               // row 1: 0.5, then 1
    tensors.emplace_back(mlp + "experts." + name + "_blocks", std::move(blocks));
    tensors.emplace_back(mlp + "experts." + name + "_scales", std::move(scales));
  }
  const std::filesystem::path file = m_folder.path() / "gpt_oss.safetensors";
  ASSERT_TRUE(writeSafetensors(file, tensors));
  const Result<NamedTensors> read = readTensors(document, file);
  ASSERT_TRUE(read) << read.error().message;
  const std::map<std::string, Tensor> found(read->begin(), read->end());
  const std::vector<double> wide = found.at("layer0.experts_fc1.weight").toDoubles();
  EXPECT_EQ(wide[0], -12.0);
  EXPECT_EQ(wide[1], 12.0);
  EXPECT_EQ(wide[32 * 32], 1.0);  // the first row of up follows 32 of gate
  EXPECT_EQ(wide[32 * 32 + 1], 2.0);
  const std::vector<double> down = found.at("layer0.experts_fc2.weight").toDoubles();
  EXPECT_EQ(down[0], -12.0);
  EXPECT_EQ(down[32], 1.0);
}

/// Joined, transposed, with heads together, by expert, in pairs, and as rows of a tensor that parameters share.
TEST_F(ModelWeights, ComeBackFromTheModelsOwnNames) {
  const Json gpt2 = {{"model_type", "gpt2"}, {"vocab_size", 5}, {"n_embd", 8},
                     {"n_head", 2},          {"n_layer", 2},    {"n_positions", 4}};
  const Json oss = with(small("gpt_oss"), {{"num_local_experts", 3}, {"num_experts_per_tok", 2}});
  const std::filesystem::path file = m_folder.path() / "saved.safetensors";
  for (const Json& config : {small("llama"), gpt2, small("gpt_neox"), with(small("qwen3_moe"), kExperts), oss,
                             with(small("deepseek_v3"), kLatent), kImages, with(kImages, {{"model_type", "deit"}}),
                             with(kImages, {{"model_type", "siglip_vision_model"}})}) {
    const PipelineDocument document = parseDocument(serialize(imported(config).document)).document;
    const LoweredGraph lowered = lower(document, {.pass = ExecutionMode::Inference});
    const NamedTensors parameters = parametersOf(lowered.graph, *makeBindings(lowered.graph, 3));
    const Result<NamedTensors> renamed = withModelNames(document, parameters);
    ASSERT_TRUE(renamed) << renamed.error().message;
    EXPECT_TRUE(std::ranges::none_of(*renamed, [](const auto& each) { return each.first.starts_with("layer"); }));
    ASSERT_TRUE(writeSafetensors(file, *renamed));
    const Result<NamedTensors> read = readTensors(document, file);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->size(), parameters.size());
    const std::map<std::string, Tensor> found(read->begin(), read->end());
    for (const auto& [name, tensor] : parameters) EXPECT_EQ(found.at(name).data, tensor.data) << config << name;
  }
}

/// As transformers writes them: tensors in shards, and an index.
TEST_F(ModelWeights, AreSavedInShardsWhereTheyAreLarge) {
  const PipelineDocument document = imported(small("llama")).document;
  const LoweredGraph lowered = lower(document, {.pass = ExecutionMode::Inference});
  const NamedTensors parameters = parametersOf(lowered.graph, *makeBindings(lowered.graph, 3));
  const NamedTensors renamed = *withModelNames(document, parameters);
  const std::filesystem::path file = modelFileOf(m_folder.path());
  EXPECT_EQ(file.filename(), "model.safetensors");
  ASSERT_TRUE(writeModelFiles(file, renamed, 60'000));
  EXPECT_FALSE(std::filesystem::exists(file));
  WeightFiles files = *WeightFiles::open(m_folder.path());
  EXPECT_GT(files.files().size(), 2U);
  for (const std::filesystem::path& shard : files.files()) EXPECT_TRUE(std::filesystem::exists(shard)) << shard;
  const Result<NamedTensors> read = readTensors(document, m_folder.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), parameters.size());
  const Result<NamedTensors> fewer = readTensors(document, m_folder.path(), {{"layers", 1}});
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_LT(fewer->size(), parameters.size());
  const Result<void> beside = writeModelFiles(file, renamed);
  EXPECT_NE((beside ? "no error" : beside.error().message).find("belongs to other weights"), std::string::npos);
}

TEST_F(ModelWeights, AreSavedUnderOriginalNamesOnlyWhereTheyFit) {
  const PipelineDocument document = imported(small("llama")).document;
  const auto refused = [&](const PipelineDocument& pipeline, const std::string& name, const Shape& shape) {
    const Result<NamedTensors> result = withModelNames(pipeline, {{name, Tensor::zeros({DType::F32, shape})}});
    return result ? "no refusal" : result.error().message;
  };
  EXPECT_NE(refused(document, "layer0.qkv.weight", {161, 48}).find("cannot be divided into"), std::string::npos);
  EXPECT_NE(refused(document, "layer0.fc1.weight", {3, 48}).find("cannot be divided into"), std::string::npos);
  EXPECT_EQ(refused(document, "another", {3}), "no refusal");
  EXPECT_NE(refused({}, "another", {3}).find("no names of a model"), std::string::npos);
  const PipelineDocument images = imported(with(kImages, {{"model_type", "siglip_vision_model"}})).document;
  EXPECT_NE(refused(images, "pool_q.bias", {8}).find("not all rows of this tensor"), std::string::npos);
  EXPECT_NE(refused(images, "pool_kv.bias", {17}).find("not all rows of this tensor"), std::string::npos);
}

/// Appends a tensor that is no parameter, such as a mask, without blocks on the disk.
void appendHole(const std::filesystem::path& file, std::uint64_t bytes) {
  const std::string text = *readWholeFile(file, {.what = "safetensors file"});
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  const std::string data = text.substr(sizeof length + length);
  Json header = Json::parse(text.substr(sizeof length, length));
  header["hole"] = {{"dtype", "BOOL"}, {"shape", {bytes}}, {"data_offsets", {data.size(), data.size() + bytes}}};
  const std::string changed = header.dump();
  length = changed.size();
  std::ofstream(file, std::ios::binary) << std::string(reinterpret_cast<const char*>(&length), sizeof length) << changed
                                        << data;
  std::filesystem::resize_file(file, std::filesystem::file_size(file) + bytes);
}

/// The file claims 64 GiB that no run needs. One that shrinks later is an error of the tensors behind its end.
TEST_F(ModelWeights, AreReadOnlyWhereTheyAreNeeded) {
  const std::filesystem::path file = m_folder.path() / "model.safetensors";
  const PipelineDocument document = parseDocument(serialize(imported(kImages).document)).document;
  const LoweredGraph lowered = lower(document, {.pass = ExecutionMode::Inference});
  const NamedTensors parameters = parametersOf(lowered.graph, *makeBindings(lowered.graph, 3));
  const Result<NamedTensors> needed = withModelNames(document, parameters);
  ASSERT_TRUE(needed) << needed.error().message;
  ASSERT_TRUE(writeSafetensors(file, *needed));
  appendHole(file, std::uint64_t{1} << 36);
  const Result<NamedTensors> read = readTensors(document, m_folder.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), parameters.size());
  WeightFiles files = *WeightFiles::open(file);
  const Result<Tensor> mask = files.read("hole");
  EXPECT_NE((mask ? "no error" : mask.error().message).find("has the dtype BOOL; expected F32"), std::string::npos);
  std::filesystem::resize_file(file, 64);
  const Result<Tensor> lost = files.read("vit.layernorm.bias");
  EXPECT_NE((lost ? "no error" : lost.error().message).find("the file changed"), std::string::npos);
}

TEST(WeightTable, NamesATensorForEachExpertAndTheOneOfAll) {
  const Json table = weightTable(imported(with(small("qwen3_moe"), kExperts)).document);
  const auto found =
      std::ranges::find_if(table, [](const Json& entry) { return entry["parameter"] == "layer{}.experts_fc1.weight"; });
  ASSERT_NE(found, table.end());
  const Json expected = {
      {"parameter", "layer{}.experts_fc1.weight"},
      {"tensors",
       {"model.layers.{}.mlp.experts.{e}.gate_proj.weight", "model.layers.{}.mlp.experts.{e}.up_proj.weight"}},
      {"order", "experts"},
      {"together", "model.layers.{}.mlp.experts.gate_up_proj"}};
  EXPECT_EQ(*found, expected);
}

TEST_F(ModelWeights, UnderFuselinesNamesAreReadAsTheyAre) {
  const NamedTensors tensors = {{"norm.weight", Tensor::zeros({DType::BF16, {48}})}};
  const std::filesystem::path file = m_folder.path() / "own.safetensors";
  ASSERT_TRUE(writeSafetensors(file, tensors));
  const Result<NamedTensors> read = readTensors(imported(small("llama")).document, file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->front().first, "norm.weight");
}

TEST(WeightTable, LeavesOutMalformedEntries) {
  const char* const text = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 4},
    "pipeline": {}, "weights": [7, {"parameter": "a.weight"}, {"parameter": "a", "tensors": [], "order": "as_stored"},
    {"parameter": "a", "tensors": ["b"], "order": "upside_down"},
    {"parameter": "a", "tensors": ["b"], "order": "as_stored", "first": 3},
    {"parameter": "a", "tensors": ["b"], "order": "as_stored", "first": 3, "shape": [3]},
    {"parameter": "a", "tensors": ["b"], "order": "heads_together", "heads": 2000000000},
    {"parameter": "a", "tensors": ["b"], "order": "transposed"}]})";
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_TRUE(loaded.diagnostics.empty());
  EXPECT_EQ(weightTable(loaded.document).dump(), R"([{"parameter":"a","tensors":["b"],"order":"transposed"}])");
}

}  // namespace
}  // namespace fuseline::testing
