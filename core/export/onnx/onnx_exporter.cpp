// Fills in the weights, last, and says in the model where it is from.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_exporter.h"

#include "core/document/file_format.h"
#include "core/document/pipeline_hash.h"
#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_listing.h"
#include "core/export/onnx/onnx_model.h"
#include "core/runtime/bindings.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Size limit of a protobuf message.
constexpr std::int64_t kLargestBytes = std::numeric_limits<std::int32_t>::max();

Error tooLarge(std::string_view name, std::int64_t bytes) {
  return {
      fmt::format("{}: the model has {} with its weights; expected less than 2 GiB. Export smaller sizes (--set), a "
                  "narrower dtype, or parts.",
                  name, formatBytes(bytes))};
}

std::int64_t numBytes(const ::onnx::TensorProto& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.dims()) elements *= extent;
  return elements * elementSize(tensor.data_type());
}

std::int64_t weightBytes(const OnnxModel& model) {
  std::int64_t bytes = 0;
  for (const OnnxWeight& weight : model.weights) bytes += numBytes(model.graph.initializer(weight.initializer));
  for (const WrittenConstant& constant : model.constants)
    bytes += numBytes(model.graph.initializer(constant.initializer));
  return bytes;
}

// ---- data

void setData(::onnx::TensorProto& proto, const std::vector<std::byte>& data) {
  proto.set_raw_data(data.data(), data.size());
}

using TensorsByName = std::map<std::string, Tensor, std::less<>>;

Result<void> fillCodes(::onnx::GraphProto& graph, const OnnxWeight& weight, const Tensor& tensor,
                       const TensorsByName& bindings) {
  QuantizerInputs inputs{.name = weight.parameter};
  if (!weight.scaleName.empty()) inputs.scale = static_cast<float>(bindings.at(weight.scaleName).toDoubles().front());
  const Result<QuantizedTensor> quantized = quantize(tensor, *weight.quantizer, Copies::Rowwise, inputs);
  if (!quantized) return quantized.error();
  setData(*graph.mutable_initializer(weight.initializer), quantized->rowwise->data.data);
  setData(*graph.mutable_initializer(weight.initializer + 1), quantized->rowwise->scaleInv.data);
  return {};
}

/// A parameter is let go once it is in the model.
Result<void> fill(::onnx::GraphProto& graph, const std::vector<OnnxWeight>& weights, TensorsByName bindings) {
  for (const OnnxWeight& weight : weights) {
    Tensor& tensor = bindings.at(weight.parameter);
    if (weight.quantizer) {
      if (Result<void> filled = fillCodes(graph, weight, tensor, bindings); !filled) return filled;
    } else {
      setData(*graph.mutable_initializer(weight.initializer), tensor.data);
    }
    tensor = {};
  }
  return {};
}

// ---- the model

void setMetadata(::onnx::ModelProto& model, const char* key, std::string value) {
  ::onnx::StringStringEntryProto& entry = *model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(std::move(value));
}

/// The first that has the newest ops. Source: the versions table of the ONNX project.
std::int64_t irVersionOf(const OnnxOpsets& opsets) {
  std::int64_t newest = kOnnxOpset;
  for (const auto& opset : opsets)
    if (opset.domain().empty() || opset.domain() == "ai.onnx") newest = std::max(newest, opset.version());
  if (newest <= kOnnxOpset) return kOnnxIrVersion;
  return newest <= 22 ? 10 : newest <= 23 ? 11 : 12;
}

/// The model except for the graph's hash, because the weights are not there yet.
::onnx::ModelProto modelOf(const ExportedPipeline& pipeline, OnnxModel& made) {
  ::onnx::ModelProto model;
  model.set_ir_version(irVersionOf(made.opsets));
  model.mutable_opset_import()->Swap(&made.opsets);
  model.set_producer_name("fuseline");
  model.set_producer_version(std::string(version()));
  model.set_doc_string(
      fmt::format("The forward pass of {}, for inference. The metadata contains the pipeline file.", pipeline.name));
  const PipelineDocument document = documentAsAnalysed(pipeline);
  setMetadata(model, kOnnxPipelineHashKey, hashWithoutView(toJson(document)));
  setMetadata(model, kOnnxPipelineKey, serialize(document));
  *model.mutable_graph() = std::move(made.graph);
  return model;
}

std::string head(const ExportedPipeline& pipeline, const OnnxModel& model, std::int64_t bytes) {
  return fmt::format("{}: ONNX, opset {}, IR version {}, weights of {}\n\n", pipeline.name,
                     pipeline.onnxOpset == 0 ? kOnnxOpset : pipeline.onnxOpset, irVersionOf(model.opsets),
                     formatBytes(bytes));
}

std::string weightsNote(const ExportedPipeline& pipeline) {
  if (pipeline.tensors) return "Weights come from the given tensors, others are random.";
  return fmt::format(
      "Weights are random, from seed {}. For those of a run: `fuseline run --save STATE.safetensors`, then --tensors "
      "STATE.safetensors (Run > Load tensors from a file).",
      pipeline.seed);
}

// ---- constants of kept nodes

/// They are not drawn: nothing says how.
Result<void> checkConstants(const OnnxModel& model, const NamedTensors* tensors) {
  std::vector<std::string> missing;
  for (const WrittenConstant& constant : model.constants)
    if (!tensors || std::ranges::find(*tensors, constant.name, &NamedTensors::value_type::first) == tensors->end())
      missing.push_back(constant.name);
  if (missing.empty()) return {};
  return Error{
      fmt::format("{}: constants of the imported model, which are not in this file. Add --tensors W.safetensors, from "
                  "`fuseline import MODEL --weights W.safetensors`.",
                  nameList(missing))};
}

Result<void> fillConstants(::onnx::GraphProto& graph, const std::vector<WrittenConstant>& constants,
                           const NamedTensors& tensors) {
  for (const WrittenConstant& constant : constants) {
    const auto given = std::ranges::find(tensors, constant.name, &NamedTensors::value_type::first);
    if (Result<void> filled = fillKept(*graph.mutable_initializer(constant.initializer), given->second, constant.name);
        !filled)
      return filled;
  }
  return {};
}

}  // namespace

Result<PipelineText> onnxFile(const ExportedPipeline& pipeline) {
  Result<OnnxModel> model = onnxModel(pipeline);
  if (!model) return model.error();
  if (Result<void> given = checkConstants(*model, pipeline.tensors.get()); !given) return given.error();
  const std::int64_t bytes = weightBytes(*model);
  if (bytes > kLargestBytes) return tooLarge(pipeline.name, bytes);
  PipelineText file{.text = head(pipeline, *model, bytes) + onnxListing(model->graph),
                    .notes = std::move(model->notes)};
  if (!model->weights.empty()) file.notes.push_back(weightsNote(pipeline));
  file.bytes = [proto = modelOf(pipeline, *model), weights = std::move(model->weights),
                constants = std::move(model->constants), graph = pipeline.analysis.graph(), seed = pipeline.seed,
                tensors = pipeline.tensors]() -> Result<std::string> {
    std::set<std::string> wanted;
    for (const OnnxWeight& weight : weights) wanted.insert({weight.parameter, weight.scaleName});
    const auto isWeight = [&](const std::string& name) { return wanted.contains(name); };
    Result<NamedTensors> bindings = makeBindings(graph, seed, tensors ? *tensors : NamedTensors(), isWeight);
    if (!bindings) return bindings.error();
    ::onnx::ModelProto filled = proto;
    TensorsByName byName(std::move_iterator(bindings->begin()), std::move_iterator(bindings->end()));
    if (Result<void> done = fill(*filled.mutable_graph(), weights, std::move(byName)); !done) return done.error();
    if (!constants.empty())
      if (Result<void> done = fillConstants(*filled.mutable_graph(), constants, *tensors); !done) return done.error();
    setMetadata(filled, kOnnxGraphHashKey, onnxGraphHash(filled.graph()));
    const auto all = static_cast<std::int64_t>(filled.ByteSizeLong());
    if (all > kLargestBytes) return tooLarge(filled.graph().name(), all);
    return filled.SerializeAsString();
  };
  return file;
}

}  // namespace fuseline
