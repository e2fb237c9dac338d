// Fills in the weights, last, and says in the model where it is from.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_exporter.h"

#include "core/document/file_format.h"
#include "core/document/pipeline_hash.h"
#include "core/export/onnx/onnx_listing.h"
#include "core/export/onnx/onnx_model.h"
#include "core/ops/external.h"
#include "core/runtime/bindings.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Of a message of protobuf.
constexpr std::int64_t kLargestBytes = std::numeric_limits<std::int32_t>::max();

Error tooLarge(std::string_view name, std::int64_t bytes) {
  return {
      fmt::format("{}: the model with its weights takes {}, and an ONNX file without external data holds less than 2 "
                  "GiB. Export it "
                  "with smaller sizes (--set), in a narrower dtype, or in parts.",
                  name, formatBytes(bytes))};
}

std::int64_t numBytes(const ::onnx::TensorProto& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.dims()) elements *= extent;
  switch (tensor.data_type()) {
    case ::onnx::TensorProto::FLOAT: return 4 * elements;
    case ::onnx::TensorProto::FLOAT16:
    case ::onnx::TensorProto::BFLOAT16: return 2 * elements;
    default: return elements;
  }
}

std::int64_t weightBytes(const OnnxModel& model) {
  std::int64_t bytes = 0;
  for (const OnnxWeight& weight : model.weights) bytes += numBytes(model.graph.initializer(weight.initializer));
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

/// But for the hash of the graph, of which the numbers are not there yet.
::onnx::ModelProto modelOf(const ExportedPipeline& pipeline, ::onnx::GraphProto graph) {
  ::onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.add_opset_import()->set_version(kOnnxOpset);
  model.set_producer_name("fuseline");
  model.set_producer_version(std::string(version()));
  model.set_doc_string(
      fmt::format("The forward pass of {}, in inference. The pipeline file stands in the metadata.", pipeline.name));
  const std::string text = serialize(documentAsAnalysed(pipeline));
  setMetadata(model, kOnnxPipelineHashKey, hashWithoutView(Json::parse(text)));
  setMetadata(model, kOnnxPipelineKey, text);
  *model.mutable_graph() = std::move(graph);
  return model;
}

std::string head(const ExportedPipeline& pipeline, std::int64_t bytes) {
  return fmt::format("{}: ONNX, opset {}, IR version {}, weights of {}\n\n", pipeline.name, kOnnxOpset, kOnnxIrVersion,
                     formatBytes(bytes));
}

std::string weightsNote(const ExportedPipeline& pipeline) {
  if (pipeline.tensors) return "Weights are those of the tensors given; others are initial ones.";
  return fmt::format(
      "Weights are the initial ones, from seed {}. What `fuseline run --save STATE.safetensors` writes, taken with "
      "--tensors (Run > Take tensors from a file), has those of a run.",
      pipeline.seed);
}

/// The model would be in pieces.
std::optional<Error> refuseExternals(const Graph& graph) {
  for (const ValueId input : graph.inputs())
    if (const std::string& name = graph.value(input).name; isOfExternal(name))
      return Error{fmt::format("{} (External) has no form in ONNX. Remove it, or export each part by itself.",
                               externalOf(name))};
  return std::nullopt;
}

}  // namespace

Result<PipelineText> onnxFile(const ExportedPipeline& pipeline) {
  if (auto error = refuseExternals(pipeline.analysis.graph())) return *error;
  Result<OnnxModel> model = onnxModel(pipeline);
  if (!model) return model.error();
  const std::int64_t bytes = weightBytes(*model);
  if (bytes > kLargestBytes) return tooLarge(pipeline.name, bytes);
  PipelineText file{.text = head(pipeline, bytes) + onnxListing(model->graph), .notes = std::move(model->notes)};
  if (!model->weights.empty()) file.notes.push_back(weightsNote(pipeline));
  file.bytes = [proto = modelOf(pipeline, std::move(model->graph)), weights = std::move(model->weights),
                graph = pipeline.analysis.graph(), seed = pipeline.seed,
                tensors = pipeline.tensors]() -> Result<std::string> {
    Result<NamedTensors> bindings = makeBindings(graph, seed, tensors ? *tensors : NamedTensors());
    if (!bindings) return bindings.error();
    ::onnx::ModelProto filled = proto;
    TensorsByName byName(std::move_iterator(bindings->begin()), std::move_iterator(bindings->end()));
    if (Result<void> done = fill(*filled.mutable_graph(), weights, std::move(byName)); !done) return done.error();
    setMetadata(filled, kOnnxGraphHashKey, onnxGraphHash(filled.graph()));
    const auto all = static_cast<std::int64_t>(filled.ByteSizeLong());
    if (all > kLargestBytes) return tooLarge(filled.graph().name(), all);
    return filled.SerializeAsString();
  };
  return file;
}

}  // namespace fuseline
