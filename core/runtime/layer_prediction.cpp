// Shortens the document as JSON, and multiplies the times of the layers that are left.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/layer_prediction.h"

#include "core/document/file_format.h"
#include "core/profile/stats.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kBlock = "block:";

bool isOf(const std::string& port, const std::string& op) { return port.starts_with(op + "."); }

/// The source of its only input, if it has one input and one output that is read.
std::optional<std::string> sourceOfChain(const Json& pipeline, const std::string& op) {
  std::optional<std::string> source, output;
  for (const Json& wire : pipeline["wires"]) {
    const auto& from = wire[0].get_ref<const std::string&>();
    if (isOf(wire[1].get_ref<const std::string&>(), op)) {
      if (source) return std::nullopt;
      source = from;
    }
    if (isOf(from, op) && output.value_or(from) != from) return std::nullopt;
    if (isOf(from, op)) output = from;
  }
  return source;
}

/// Consumers of the op read its source instead.
void takeOut(Json& pipeline, const std::string& op, const std::string& source) {
  Json wires = Json::array();
  for (Json& wire : pipeline["wires"]) {
    if (isOf(wire[1].get_ref<const std::string&>(), op)) continue;
    if (isOf(wire[0].get_ref<const std::string&>(), op)) wire[0] = source;
    wires.push_back(std::move(wire));
  }
  pipeline["wires"] = std::move(wires);
  for (Json& output : pipeline.at("outputs"))
    if (output.contains("from") && isOf(output["from"].get_ref<const std::string&>(), op)) output["from"] = source;
}

/// The index of the entry of an instance like this one.
std::optional<std::size_t> sameLayer(const std::vector<RepeatedLayer>& layers, const Json& ops, const Json& op) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto first = std::ranges::find_if(ops, [&](const Json& each) { return each["id"] == layers[i].layer; });
    if ((*first)["op"] == op["op"] && first->value("attributes", Json()) == op.value("attributes", Json())) return i;
  }
  return std::nullopt;
}

std::string layerOf(const StepRecord& step) {
  const std::string path = step.ops.empty() ? step.name : step.ops.front();
  return path.substr(0, path.find('.'));
}

std::string partName(const LayerPrediction::Part& part) {
  return part.layer.layer.empty() ? "other ops" : fmt::format("{} ({})", part.layer.layer, part.layer.block);
}

}  // namespace

Result<ShortenedModel> withLayersOnce(const PipelineDocument& document) {
  Json json = toJson(document);
  Json& pipeline = json["pipeline"];
  const Json ops = pipeline["ops"];
  Json kept = Json::array();
  ShortenedModel model;
  for (const Json& op : ops) {
    const auto& type = op["op"].get_ref<const std::string&>();
    const auto& id = op["id"].get_ref<const std::string&>();
    const std::optional<std::string> source = sourceOfChain(pipeline, id);
    if (!type.starts_with(kBlock) || !source) {
      kept.push_back(op);
      continue;
    }
    if (const auto known = sameLayer(model.layers, kept, op)) {
      ++model.layers[*known].count;
      takeOut(pipeline, id, *source);
    } else {
      model.layers.push_back({.layer = id, .block = type.substr(kBlock.size())});
      kept.push_back(op);
    }
  }
  const auto isRepeated = [](const RepeatedLayer& layer) { return layer.count > 1; };
  if (std::ranges::none_of(model.layers, isRepeated))
    return Error{
        "--predict-layers: no block has several instances in a chain, so no layer can be skipped. Run the pipeline "
        "without this option.",
        ErrorKind::Usage};
  pipeline["ops"] = std::move(kept);
  model.document = readDocument(json).document;
  return model;
}

double LayerPrediction::totalNs() const {
  double sum = 0.0;
  for (const Part& part : parts) sum += part.layer.count * part.ns;
  return sum;
}

TimeRange LayerPrediction::total() const {
  TimeRange sum;
  for (const Part& part : parts) sum += {part.layer.count * part.range.lowNs, part.layer.count * part.range.highNs};
  return sum;
}

std::vector<LayerPrediction> predict(const RunRecord& record, const std::vector<RepeatedLayer>& layers) {
  std::vector<LayerPrediction> predictions;
  for (const VariantRecord& variant : record.variants) {
    LayerPrediction& prediction = predictions.emplace_back(LayerPrediction{.variant = variant.name, .parts = {}});
    for (const RepeatedLayer& layer : layers) prediction.parts.push_back({.layer = layer});
    prediction.parts.emplace_back();
    for (const StepRecord& step : variant.steps) {
      if (step.samplesNs.empty()) continue;
      const std::string layer = layerOf(step);
      auto part = std::ranges::find(prediction.parts, layer, [](const auto& each) { return each.layer.layer; });
      if (part == prediction.parts.end()) --part;
      const SampleStats stats = summarize(step.samplesNs);
      part->ns += stats.median;
      part->range += {stats.lowerQuartile, stats.upperQuartile};
    }
  }
  return predictions;
}

std::string toString(const std::vector<LayerPrediction>& predictions) {
  std::string text;
  for (const LayerPrediction& prediction : predictions) {
    text += fmt::format("{}\n", prediction.variant);
    for (const LayerPrediction::Part& part : prediction.parts)
      text += fmt::format("  {:<32} {:>12} x {:<4} = {:>12}\n", partName(part), formatDuration(part.ns),
                          part.layer.count, formatDuration(part.layer.count * part.ns));
    const TimeRange range = prediction.total();
    text +=
        fmt::format("  {:<32} {:>34}, {} to {}\n", "step of the model, estimated", formatDuration(prediction.totalNs()),
                    formatDuration(range.lowNs), formatDuration(range.highNs));
  }
  return text +
         "Estimated from the layers above, each measured once, and from the ops outside of layers: sums of step "
         "medians, with quartiles. Not included: gaps between steps, cache effects of the whole model, and fusions "
         "across layers.\n";
}

Json toJson(const std::vector<LayerPrediction>& predictions) {
  Json list = Json::array();
  for (const LayerPrediction& prediction : predictions) {
    Json parts = Json::array();
    for (const LayerPrediction::Part& part : prediction.parts)
      parts.push_back({{"layer", part.layer.layer},
                       {"block", part.layer.block},
                       {"count", part.layer.count},
                       {"measuredNs", part.ns}});
    list.push_back({{"variant", prediction.variant},
                    {"parts", std::move(parts)},
                    {"estimatedNs", prediction.totalNs()},
                    {"estimatedLowNs", prediction.total().lowNs},
                    {"estimatedHighNs", prediction.total().highNs}});
  }
  return {{"layerPredictions", std::move(list)}};
}

Json layerPredictionSchema() {
  const Json part = schema::object({{"layer", schema::text("Empty: all ops outside of layers.")},
                                    {"block", schema::text()},
                                    {"count", schema::integer("Instances of the block in the model.")},
                                    {"measuredNs", schema::number("Sum of the medians of its steps.")}});
  const Json prediction =
      schema::object({{"variant", schema::text()},
                      {"parts", schema::list(part)},
                      {"estimatedNs", schema::number("Estimated time of a training step of the whole model.")},
                      {"estimatedLowNs", schema::number("Estimate from the lower quartiles.")},
                      {"estimatedHighNs", schema::number("Estimate from the upper quartiles.")}});
  return schema::object({{"layerPredictions", schema::list(prediction)}});
}

}  // namespace fuseline
