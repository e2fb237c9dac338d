// Estimates from a data sheet.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/small_layers.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/data_sheets.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr double kPerUs = 1e3;  // one billion per second, in units per microsecond
/// Minimum time of a kernel, however small.
constexpr double kLaunchUs = 3.0;

constexpr std::size_t kMostNamed = 3;

/// A layer that multiplies.
bool isForHopper(const Node& node) {
  if (!node.operation->isQuantizable || node.operation->isView) return false;
  const auto& input = node.quantizers.input;
  const auto& spec = input.rowwise ? input.rowwise : input.columnwise;
  return spec && (spec->scaling == Scaling::PerTensor || spec->scaling == Scaling::Block1x128);
}

struct Fp8Layer {
  NodeId node = -1;
  Fp8Estimate estimate;

  double gainUs() const { return estimate.savedUs - estimate.quantizeUs; }
};

std::vector<Fp8Layer> fp8Layers(const Graph& graph) {
  std::vector<Fp8Layer> layers;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const TensorSpec& x = graph.spec(id, OperandKind::Input, 0);
    if (!isForHopper(graph.node(id)) || x.dtype == DType::F32 || x.rows() == 0) continue;
    const std::int64_t n = graph.spec(id, OperandKind::Output, 0).cols();
    layers.push_back({id, estimateFp8(x.rows(), n, x.cols(), graph.pass() == ExecutionMode::Training)});
  }
  return layers;
}

std::string textOf(const Graph& graph, const Fp8Layer& layer) {
  return fmt::format("{} (saves {:.2g} us, costs {:.2g} us)", graph.node(layer.node).id, layer.estimate.savedUs,
                     layer.estimate.quantizeUs);
}

std::string listed(const Graph& graph, const std::vector<Fp8Layer>& layers) {
  std::vector<std::string> texts;
  for (const Fp8Layer& layer : layers)
    if (texts.size() < kMostNamed) texts.push_back(textOf(graph, layer));
  if (layers.size() > kMostNamed) texts.push_back(fmt::format("{} more", layers.size() - kMostNamed));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Fp8Estimate estimateFp8(std::int64_t m, std::int64_t n, std::int64_t k, bool isTraining) {
  const double numCopies = isTraining ? 2.0 : 1.0;
  const auto quantizeUs = [&](std::int64_t rows, std::int64_t cols) {
    const double bytes = (2.0 + numCopies) * static_cast<double>(rows) * static_cast<double>(cols);
    return std::max(bytes / (kH200.memoryGBps * kPerUs), kLaunchUs);
  };
  const double flops =
      (isTraining ? 6.0 : 2.0) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  // In inference weights are quantized beforehand.
  const double backwardUs = isTraining ? quantizeUs(n, k) + quantizeUs(m, n) : 0.0;
  return {.savedUs = flops / kPerUs * (1.0 / kH200.bf16Gflops - 1.0 / kH200.fp8Gflops),
          .quantizeUs = quantizeUs(m, k) + backwardUs};
}

double estimateFp8(const Graph& graph) {
  double savedUs = 0.0;
  for (const Fp8Layer& layer : fp8Layers(graph)) savedUs += layer.gainUs();
  return savedUs;
}

std::optional<Diagnostic> noteSmallLayers(const Graph& graph, const Recipe& recipe) {
  std::vector<Fp8Layer> layers = fp8Layers(graph);
  std::erase_if(layers, [](const Fp8Layer& layer) { return layer.gainUs() >= 0.0; });
  if (layers.empty()) return std::nullopt;
  return Diagnostic{.severity = Severity::Note,
                    .code = kSmallLayersCode,
                    .node = graph.node(layers.front().node).owner,
                    .message = fmt::format("{} is estimated to make {} slower than 16 bits on an H200. Use larger "
                                           "GEMMs, or override {} to high precision: {}.",
                                           recipe.name(), layers.size() == 1 ? "a layer" : "layers",
                                           layers.size() == 1 ? "it" : "them", listed(graph, layers))};
}

}  // namespace fuseline
