// Features and statistics are those of TransformerEngine 2.19 and 2.20: transformer_engine/debug/features.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/inspect/inspect_config.h"

#include "core/export/inspect/yaml_text.h"
#include "core/support/version.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::size_t kColumns = 110;
// A step that logs computes every statistic of every tensor, so that few should: a hundred of ten thousand. The first
// ones, in which scales and weights settle, say little.
constexpr int kEveryStep = 100;
constexpr int kFirstStep = 100;
constexpr int kLastStep = 10000;
constexpr std::size_t kMaxChosen = 4;

/// A layer, its losses, and whether it is logged.
struct WatchedLayer {
  InspectedLayer layer;
  LayerLosses losses = {};
  bool isLogged = true;

  bool isLike(const WatchedLayer& other) const {
    return layer.kept == other.layer.kept && layer.isUnfit == other.layer.isUnfit &&
           layer.tensors == other.layer.tensors && layer.quantized == other.layer.quantized &&
           isLogged == other.isLogged;
  }
};

using Section = std::vector<WatchedLayer>;  // alike, and not empty

std::vector<Section> sectionsOf(const std::vector<WatchedLayer>& layers) {
  std::vector<Section> sections;
  for (const WatchedLayer& layer : layers) {
    const auto found =
        std::ranges::find_if(sections, [&](const Section& section) { return section.front().isLike(layer); });
    if (found == sections.end())
      sections.push_back({layer});
    else
      found->push_back(layer);
  }
  std::stable_partition(sections.begin(), sections.end(),
                        [](const Section& section) { return section.front().isLogged; });
  return sections;
}

/// Those with the most noise: half of them, but not more than a few.
void chooseNoisiest(std::vector<WatchedLayer>& layers) {
  std::vector<WatchedLayer*> byNoise;
  for (WatchedLayer& layer : layers) byNoise.push_back(&layer);
  std::ranges::stable_sort(byNoise, {}, [](const WatchedLayer* layer) { return layer->losses.signalToNoise(); });
  const std::size_t numChosen = std::min((byNoise.size() + 1) / 2, kMaxChosen);
  for (std::size_t i = numChosen; i < byNoise.size(); ++i) byNoise[i]->isLogged = false;
}

template <class Item, class NameOf>
std::string flowList(const std::vector<Item>& items, NameOf nameOf) {
  std::vector<std::string> names;
  for (const Item& item : items) names.emplace_back(nameOf(item));
  return fmt::format("[{}]", fmt::join(names, ", "));
}

std::string gemmNames(const std::vector<GemmRole>& gemms, const char* between) {
  std::vector<std::string_view> names;
  for (const GemmRole gemm : gemms) names.push_back(roleName(gemm));
  return fmt::format("{}", fmt::join(names, between));
}

std::string moduleRegex(const InspectedLayer& layer) {
  return regexText(layer.module) + (layer.isGrouped ? R"(\.gemm_[0-9]+)" : "");
}

std::string sectionRegex(const Section& section) {
  if (section.size() == 1) return fmt::format("^{}$", moduleRegex(section.front().layer));
  std::vector<std::string> modules;
  for (const WatchedLayer& each : section) modules.push_back(moduleRegex(each.layer));
  return fmt::format("^({})$", fmt::join(modules, "|"));
}

std::string stemOf(const WatchedLayer& each) {
  if (each.layer.isWhollyKept()) return "high_precision_layers";
  if (!each.layer.kept.empty()) return "high_precision_" + gemmNames(each.layer.kept, "_");
  return each.layer.quantized.empty() ? "linear_layers" : "quantized_layers";
}

/// "fc1: gradient (columnwise) 12.3 dB, 1.2 % underflow, 0 % saturation, mse 1.2e-05, e5m2 (per_tensor)".
std::string lossText(const InspectedLayer& layer, TensorType tensor, const CopyLosses& copy) {
  const QuantizationLosses& losses = copy.losses;
  const double dB = losses.signalToNoise;
  return fmt::format("{}: {} ({}) {}, {:.3g} % underflow, {:.3g} % saturation, mse {:.3g}, {}", layer.module,
                     inspectName(tensor), copy.name.substr(copy.name.find('@') + 1),
                     std::isinf(dB) ? "without noise" : fmt::format("{:.1f} dB", dB), 100.0 * losses.underflowShare,
                     100.0 * losses.saturationShare, losses.meanSquaredError, copy.format);
}

bool isNvfp4(const Recipe& recipe) { return recipe.name().starts_with("NVFP4"); }

/// TransformerEngine counted the padding of MXFP8's scales.
const char* knownProblem(const Recipe& recipe) {
  const bool isMxfp8 = recipe.name().starts_with("MXFP8");
  return isMxfp8 ? " scale_inv_min is 0 before TransformerEngine's pull request 3041." : "";
}

/// Statistics that the tool computes from the quantized tensors of the recipe, without a further cast.
const char* quantizedStats(const Recipe& recipe) {
  if (isNvfp4(recipe)) return "[underflows%, mse]";
  return recipe.definition().hasState
             ? "[underflows%, fp8_delayed_scaling_overflows%, scale_inv_min, scale_inv_max, mse]"
             : "[underflows%, scale_inv_min, scale_inv_max, mse]";
}

class Writer {
 public:
  explicit Writer(const InspectSource& source) : m_source(source) {}

  Result<InspectConfig> write() {
    if (Result<void> watched = watchLayers(); !watched) return watched.error();
    addNotes();
    writeHead();
    for (const Section& section : sectionsOf(m_layers)) writeSection(section);
    return InspectConfig{.text = std::move(m_text), .notes = std::move(m_notes)};
  }

 private:
  Result<void> watchLayers() {
    for (InspectedLayer& layer : inspectedLayers(m_source.graph, m_source.recipe))
      m_layers.push_back({.layer = std::move(layer)});
    if (m_layers.empty())
      return Error{
          fmt::format("{}: nvidia-dlfw-inspect observes linear layers, but this pipeline has none. Add a Linear, "
                      "BasicLinear or GroupedLinear.",
                      m_source.name)};
    return m_source.run ? takeLosses(*m_source.run) : Result<void>();
  }

  Result<void> takeLosses(const RunRecord& run) {
    const bool isQuantized = std::ranges::any_of(m_layers, [](auto& each) { return !each.layer.quantized.empty(); });
    if (!run.numerics || (isQuantized && run.numerics->copies.empty()))
      return Error{
          fmt::format("{}: nvidia-dlfw-inspect needs numerics, but this run has none. Measure them (`fuseline run "
                      "PIPELINE --numerics -o RUN.fuserun`), or export the pipeline.",
                      m_source.name)};
    for (WatchedLayer& each : m_layers) each.losses = lossesOf(each.layer, run.numerics->copies);
    m_isChosen = !run.numerics->copies.empty();
    if (m_isChosen) chooseNoisiest(m_layers);
    return {};
  }

  // ---- notes

  bool hasOverride(bool (*is)(const RoleOverride&)) const {
    return std::ranges::any_of(m_source.recipe.overrides(), is);
  }

  void addNotes() {
    m_notes.emplace_back(
        "The debug tool sees modules (te.Linear, te.LayerNormLinear, te.GroupedLinear), not te.ops, up to "
        "TransformerEngine 2.20. Name these modules after the ops below, as in name=\"fc1\".");
    if (hasOverride([](const RoleOverride& special) { return special.format.has_value(); }))
      m_notes.emplace_back("Overrides that choose another format have no counterpart in the tool and are left out.");
    if (hasOverride([](const RoleOverride& special) { return !special.format && special.tensor; }))
      m_notes.emplace_back(
          "The tool can only leave whole GEMMs in high precision, so an override of one operand includes the other.");
    if (std::ranges::any_of(m_layers, [](const WatchedLayer& each) { return each.layer.isUnfit; }))
      m_notes.emplace_back(
          "Layers with shapes that do not fit the recipe stay in high precision here; TransformerEngine may still "
          "refuse them.");
  }

  // ---- the head

  void writeHead() {
    comment(0, fmt::format("Configuration of nvidia-dlfw-inspect, TransformerEngine's debug tool, for {}; recipe {}.",
                           m_source.name, m_source.recipe.name()));
    comment(0, fmt::format("Written by fuseline {}.", version()));
    paragraph(
        "Call nvdlfw_inspect.api.initialize(config_file=..., feature_dirs=..., log_dir=...) before creating modules, "
        "with the folder transformer_engine/debug/features, and nvdlfw_inspect.api.step() after each step.");
    for (const std::string& note : m_notes) paragraph(note);
    paragraph(
        "layer_name_regex_pattern matches whole names. For nested modules prefix their path, as in "
        "'^model\\.mlp\\.fc1$', or use '(^|\\.)' in place of '^'. The tool refuses layers that match two sections.");
    paragraph(
        fmt::format("Statistics are logged every {}th step from {} to {} (freq, start_step, end_step). If a layer has "
                    "only statistics sections, the steps without logging are not slower.",
                    kEveryStep, kFirstStep, kLastStep));
    if (m_isChosen) paragraph(choiceText());
  }

  std::string choiceText() const {
    const auto numLogged = std::ranges::count_if(m_layers, &WatchedLayer::isLogged);
    return fmt::format(
        "Linear layers: {}, of which the {} with the largest error are logged. Figures are of each layer's noisiest "
        "tensor, on {}, in one step; SNR in dB. Training differs.",
        m_layers.size(), numLogged, m_source.run->deviceName());
  }

  // ---- sections

  void writeSection(const Section& section) {
    const WatchedLayer& first = section.front();
    const InspectedLayer& layer = first.layer;
    m_text += "\n";
    comment(0, purposeText(first));
    for (const WatchedLayer& each : section)
      for (const auto& [tensor, copy] : each.losses.worst) comment(0, lossText(each.layer, tensor, copy));
    m_text += fmt::format("{}:\n", freeName(stemOf(first) + (first.isLogged ? "" : "_not_logged")));
    m_text += fmt::format("  enabled: {}\n", flag(first.isLogged || !layer.kept.empty()));
    m_text += fmt::format("  layers:\n    layer_name_regex_pattern: {}\n", yamlText(sectionRegex(section)));
    m_text += "  transformer_engine:\n";
    writeKept(layer);
    writeStatistics(first);
  }

  static std::string purposeText(const WatchedLayer& each) {
    const InspectedLayer& layer = each.layer;
    const std::string logged = each.isLogged ? "" : " To log them too, change False to True.";
    if (layer.kept.empty())
      return (layer.quantized.empty() ? "In high precision." : "Quantized by the recipe.") + logged;
    return fmt::format("{} in high precision, {}.{}", layer.isWhollyKept() ? "Wholly" : gemmNames(layer.kept, " and "),
                       layer.isUnfit ? "because of its shape" : "by overrides of the recipe", logged);
  }

  void writeKept(const InspectedLayer& layer) {
    if (layer.kept.empty()) return;
    comment(4, "GEMMs in high precision: fprop, dgrad or wgrad.");
    if (layer.isWhollyKept())
      m_text += "    DisableQuantizationLayer:\n      enabled: True\n";
    else
      m_text += fmt::format("    DisableQuantizationGEMM:\n      enabled: True\n      gemms: {}\n",
                            flowList(layer.kept, [](GemmRole gemm) { return roleName(gemm); }));
  }

  void writeStatistics(const WatchedLayer& each) {
    std::vector<TensorType> plain = each.layer.tensors;
    std::erase_if(plain, [&](TensorType type) { return std::ranges::count(each.layer.quantized, type) > 0; });
    if (!each.layer.quantized.empty()) {
      comment(4, std::string("Effects of quantization: elements that become 0, scales, and the mean squared error.") +
                     knownProblem(m_source.recipe));
      writeFeature(isNvfp4(m_source.recipe) ? "LogNvfp4TensorStats" : "LogFp8TensorStats", each.isLogged,
                   each.layer.quantized, quantizedStats(m_source.recipe));
    }
    if (plain.empty()) return;
    comment(4, "Range of the tensors in high precision, which a format would have to represent.");
    writeFeature("LogTensorStats", each.isLogged, plain, "[cur_amax, dynamic_range, mean, std]");
  }

  void writeFeature(const char* name, bool isOn, const std::vector<TensorType>& tensors, const char* stats) {
    m_text += fmt::format(
        "    {}:\n      enabled: {}\n      tensors: {}\n      stats: {}\n      freq: {}\n      start_step: {}\n"
        "      end_step: {}\n",
        name, flag(isOn), flowList(tensors, inspectName), stats, kEveryStep, kFirstStep, kLastStep);
  }

  static const char* flag(bool isOn) { return isOn ? "True" : "False"; }

  std::string freeName(const std::string& stem) {
    std::string name = stem;
    for (int number = 2; !m_names.insert(name).second; ++number) name = fmt::format("{}_{}", stem, number);
    return name;
  }

  // ---- lines

  void paragraph(std::string_view text) {
    m_text += "#\n";
    comment(0, text);
  }

  /// Broken at spaces.
  void comment(std::size_t indent, std::string_view text) {
    std::string rest = yamlComment(text);
    const std::string begin = std::string(indent, ' ') + "# ";
    while (!rest.empty()) {
      std::size_t end = rest.size();
      if (begin.size() + end > kColumns) {
        end = rest.rfind(' ', kColumns - begin.size());
        if (end == std::string::npos) end = std::min(rest.find(' '), rest.size());
      }
      m_text += begin + rest.substr(0, end) + "\n";
      rest.erase(0, std::min(end + 1, rest.size()));
    }
  }

  const InspectSource& m_source;
  std::vector<WatchedLayer> m_layers;
  bool m_isChosen = false;  // by measured losses
  std::vector<std::string> m_notes;
  std::set<std::string> m_names;  // of sections
  std::string m_text;
};

}  // namespace

Result<InspectConfig> inspectConfig(const InspectSource& source) { return Writer(source).write(); }

}  // namespace fuseline
