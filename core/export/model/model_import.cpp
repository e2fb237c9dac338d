// Looks up the architecture, lets it read the config, and writes its form as a pipeline file, which is then read as any
// other.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_import.h"

#include "core/document/file_format.h"
#include "core/document/json_text.h"
#include "core/document/json_tree.h"
#include "core/export/model/model_architectures.h"
#include "core/export/model/model_pipeline.h"
#include "core/export/model/model_weights.h"
#include "core/export/model/weight_map.h"
#include "core/lowering/lowering.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/read_file.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::size_t kMostConfigMiB = 4;

/// Keys of every model that say nothing about a training step.
void ignoreCommonKeys(const ModelConfig& config) {
  config.ignore({"_name_or_path",
                 "_attn_implementation",
                 "architectures",
                 "model_type",
                 "transformers_version",
                 "auto_map",
                 "torch_dtype",
                 "dtype",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "sep_token_id",
                 "cls_token_id",
                 "unk_token_id",
                 "decoder_start_token_id",
                 "use_cache",
                 "cache_implementation",
                 "output_attentions",
                 "output_hidden_states",
                 "return_dict",
                 "initializer_range",
                 "initializer_factor",
                 "problem_type",
                 "id2label",
                 "label2id",
                 "finetuning_task",
                 "chunk_size_feed_forward",
                 "is_encoder_decoder",
                 "is_decoder",
                 "pretraining_tp",
                 "max_position_embeddings",
                 "tokenizer_class",
                 "task_specific_params",
                 "gradient_checkpointing",
                 "summary_activation",
                 "summary_first_dropout",
                 "summary_proj_to_labels",
                 "summary_type",
                 "summary_use_proj",
                 "classifier_dropout"});
}

/// A dropout changes a training step; layers of the pipeline have none.
void noteDropouts(const ModelConfig& config, std::vector<std::string>& notes) {
  std::vector<std::string> named;
  for (const char* name :
       {"attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout", "hidden_dropout_prob",
        "attention_probs_dropout_prob", "dropout", "residual_dropout", "embedding_dropout"})
    if (config.has(name) && config.real(name, 0.0) > 0.0) named.emplace_back(name);
  if (!named.empty())
    notes.push_back(fmt::format("The pipeline has no dropout, but the config has {}: add Dropout ops to time it.",
                                fmt::join(named, ", ")));
}

void noteUnreadKeys(const ModelConfig& config, std::vector<std::string>& notes) {
  const std::vector<std::string> unread = config.unreadKeys();
  if (!unread.empty())
    notes.push_back(fmt::format("{} {} not known and {} nothing: {}.", unread.size() == 1 ? "This key" : "These keys",
                                unread.size() == 1 ? "is" : "are", unread.size() == 1 ? "changes" : "change",
                                fmt::join(unread, ", ")));
}

DType dtypeOf(const ModelConfig& config, const ModelConfig& outer, const ModelImportOptions& options) {
  if (options.dtype) return *options.dtype;
  for (const ModelConfig* each : {&config, &outer})
    for (const char* key : {"dtype", "torch_dtype"}) {
      const std::string name = each->text(key, "");
      if (name.empty() || name == "auto") continue;
      if (const std::optional<DType> dtype = parseDType(name); dtype && isFloat(*dtype)) return *dtype;
      each->refuse(key, "float32, float16 or bfloat16");
    }
  return DType::BF16;
}

Result<Json> parseConfig(std::string_view text, std::string_view name) {
  JsonTree::SyntaxError problem;
  const JsonTree tree = JsonTree::parse(text, problem);
  if (!tree.isEmpty() && tree.isObject(0)) return tree.json(0);
  const auto [line, column] = LineTable(text).place(tree.isEmpty() ? problem.offset : 0);
  return Error{fmt::format("{}:{}:{}: {} Expected the config.json of a model.", name, line, column,
                           tree.isEmpty() ? problem.message : "This is not a JSON object.")};
}

Error unknownArchitecture(std::string_view name, const std::string& modelType) {
  const std::vector<std::string> known = knownModelTypes();
  if (modelType.empty())
    return Error{fmt::format("{}: model_type is missing; expected one such as {}. Is this the config.json of a model?",
                             name, known.front())};
  return Error{
      fmt::format("{}: model_type {} is not supported{} `fuseline guide models` lists {} types. Import other "
                  "models from ONNX.",
                  name, shortened(visibleText(modelType)), didYouMean(nearest(modelType, known)), known.size())};
}

Result<void> shorten(ModelForm& form, std::string_view name, const ModelImportOptions& options) {
  if (!options.layers) return {};
  const auto numLayers = static_cast<std::int64_t>(form.layers.size());
  if (*options.layers < 1 || *options.layers > numLayers)
    return Error{fmt::format("{}: --layers is {}, but the model has {} layers; expected 1 to {}.", name,
                             *options.layers, numLayers, numLayers),
                 ErrorKind::Usage};
  form.layers.resize(static_cast<std::size_t>(*options.layers));
  if (*options.layers < numLayers)
    form.notes.push_back(fmt::format("Only the first {} of {} layers were imported.", *options.layers, numLayers));
  return {};
}

/// The object of a config that is imported, in a model of several modalities; nullptr: the config itself.
const char* modalityOf(const ModelConfig& outer) {
  const ModelConfig text = outer.section("text_config");
  const char* const textOrAll = text.isEmpty() ? nullptr : "text_config";
  if (findArchitecture(text.text("model_type", outer.text("model_type", "")))) return textOrAll;
  return findArchitecture(outer.section("vision_config").text("model_type", "")) ? "vision_config" : textOrAll;
}

Result<ModelForm> readForm(const Json& json, std::string_view name, const ModelImportOptions& options) {
  const ModelConfig outer(json, std::string(name));
  const char* const modality = modalityOf(outer);
  const ModelConfig config = modality ? outer.section(modality) : outer;
  const std::string modelType = config.text("model_type", outer.text("model_type", ""));
  const ModelArchitecture* const architecture = findArchitecture(modelType);
  if (outer.error()) return *outer.error();
  if (!architecture) return unknownArchitecture(name, modelType);
  ModelForm form = architecture->form(config);
  form.dtype = dtypeOf(config, outer, options);
  ignoreCommonKeys(config);
  noteDropouts(config, form.notes);
  noteUnreadKeys(config, form.notes);
  if (modality) form.notes.push_back(fmt::format("Only {} of the model was imported.", modality));
  if (config.error()) return *config.error();
  if (Result<void> shortened = shorten(form, name, options); !shortened) return shortened.error();
  return form;
}

Result<ImportedPipeline> pipelineOf(const ModelForm& form, std::string_view name) {
  Json pipeline = modelPipeline(form);
  pipeline["weights"] = weightTable(form);
  LoadedDocument loaded = readDocument(pipeline);
  LoweredGraph lowered{.graph = {}, .diagnostics = loaded.diagnostics};
  if (!hasErrors(lowered.diagnostics)) lowered = lower(loaded.document, {.pass = ExecutionMode::Inference});
  if (hasErrors(lowered.diagnostics))
    return Error{
        fmt::format("{}: the sizes of the model are inconsistent:\n{}", name, errorText(lowered.diagnostics, name))};
  return ImportedPipeline{.document = std::move(loaded.document), .notes = form.notes};
}

}  // namespace

std::filesystem::path modelConfigOf(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path inFolder = path / "config.json";
  return std::filesystem::is_regular_file(inFolder, ignored) ? inFolder : path;
}

bool isModelConfig(const std::filesystem::path& path) {
  if (path.extension() != ".json") return false;
  const Result<std::string> text = readWholeFile(path, {.what = "config", .maxMiB = kMostConfigMiB});
  if (!text) return false;
  const Result<Json> json = parseConfig(*text, "");
  const auto has = [&](const char* key) {
    return json ? json->contains(key) : text->find(fmt::format("\"{}\"", key)) != std::string::npos;
  };
  // With a damaged config, the import says where the damage is.
  return !has("format") && std::ranges::any_of(std::array{"model_type", "architectures", "transformers_version"}, has);
}

Result<ImportedPipeline> importModelConfig(std::string_view text, std::string_view name,
                                           const ModelImportOptions& options) {
  const Result<Json> json = parseConfig(text, name);
  if (!json) return json.error();
  const Result<ModelForm> form = readForm(*json, name, options);
  if (!form) return form.error();
  Result<ImportedPipeline> imported = pipelineOf(*form, name);
  if (!imported || !options.weights) return imported;
  const LoweredGraph lowered = lower(imported->document, {.pass = ExecutionMode::Inference});
  Result<ModelWeights> weights = readModelWeights(*form, lowered.graph, *options.weights);
  if (!weights) {
    imported->weightsProblem = weights.error();
    return imported;
  }
  imported->weights = std::move(weights->tensors);
  std::ranges::move(weights->notes, std::back_inserter(imported->notes));
  return imported;
}

Result<ImportedPipeline> importModel(const std::filesystem::path& path, const ModelImportOptions& options) {
  const Result<std::string> text = readWholeFile(path, {.what = "config", .maxMiB = kMostConfigMiB});
  if (!text) return text.error();
  return importModelConfig(*text, path.string(), options);
}

}  // namespace fuseline
