// A branch for each type of tensor, with a nested one for ops with special quantizers.
// Constructors are those of TransformerEngine 2.20: pytorch/tensor, pytorch/custom_recipes/quantizer_factory_zoo.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_factory.h"

#include "core/export/te/python_text.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/delayed_scaling.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr const char* kDType = "DType";
constexpr const char* kTensorModule = "transformer_engine.pytorch.tensor.";

std::string dtypeText(ElementFormat format) {
  switch (format) {
    case ElementFormat::E5M2: return "DType.kFloat8E5M2";
    case ElementFormat::E2M1: return "DType.kFloat4E2M1";
    case ElementFormat::E4M3: break;
  }
  return "DType.kFloat8E4M3";
}

/// Writes calls, and collects their imports.
class Quantizers {
 public:
  explicit Quantizers(const Recipe& recipe) : m_delayed(delayedFields(recipe)) {}

  PythonCall call(const std::optional<QuantizerSpec>& spec) {
    if (!spec) return made("IdentityQuantizer", "identity_tensor", {});
    if (spec->isDelayed) return request();
    const std::string dtype = "fp8_dtype=" + use(spec->format);
    switch (spec->scaling) {
      case Scaling::Mx1x32: return made("MXFP8Quantizer", "mxfp8_tensor", {dtype});
      case Scaling::Mx32x32: return made("MXFP8Quantizer", "mxfp8_tensor", {dtype, "with_2d_quantization=True"});
      case Scaling::Block1x128:
      case Scaling::Block128x128: return blocks(*spec, dtype);
      case Scaling::Nv1x16:
      case Scaling::Nv16x16:
      case Scaling::NvRow1x16: return nvfp4(*spec);
      case Scaling::PerTensor: break;
    }
    return made("Float8CurrentScalingQuantizer", "float8_tensor",
                joined({dtype, "device=\"cuda\""}, "force_pow_2_scales", spec->scale));
  }

  /// The quantizers of the tensor's two directions; one if they are equal.
  std::string returned(const TensorQuantizers& tensor, std::size_t indent) {
    const bool isOfRowwise = tensor.isDequantizedInBackward || (tensor.columnwise && tensor.columnwise->isOfRowwise);
    if (!isOfRowwise && areAlike(tensor)) return statement("return ", call(tensor.rowwise), "", indent);
    std::vector<std::string> arguments = {"rowwise_quantizer=rowwise", "columnwise_quantizer=columnwise"};
    if (isOfRowwise) arguments.emplace_back("columnwise_source=\"rowwise_dequantized\"");
    return statement("rowwise = ", call(tensor.rowwise), "", indent) +
           statement("columnwise = ", call(tensor.columnwise), "", indent) +
           statement("return ", made("HybridQuantizer", "hybrid_tensor", std::move(arguments)), "", indent);
  }

  /// In the order in which a formatter sorts them.
  std::string imports() const {
    std::string text;
    for (const auto& [module, names] : m_imports)
      text += fmt::format("    from {} import {}\n", module, fmt::join(names, ", "));
    return text;
  }

 private:
  /// A transform, and stochastic rounding, apply to one direction or to both; the class ignores settings that do not
  /// apply.
  static bool areAlike(const TensorQuantizers& tensor) { return tensor.rowwise == tensor.columnwise; }

  std::string use(ElementFormat format) {
    m_imports["transformer_engine.pytorch.constants"].insert(kDType);
    return dtypeText(format);
  }

  PythonCall made(const char* name, const char* module, std::vector<std::string> arguments) {
    m_imports[std::string(kTensorModule) + module].insert(name);
    return {name, std::move(arguments)};
  }

  static std::vector<std::string> joined(std::vector<std::string> arguments, const char* powerOfTwo,
                                         const ScaleOptions& scale) {
    arguments.push_back(fmt::format("{}={}", powerOfTwo, pythonBool(scale.isPowerOfTwo)));
    if (scale.epsilon > 0.0F) arguments.push_back(fmt::format("amax_epsilon={}", pythonNumber(scale.epsilon)));
    return arguments;
  }

  PythonCall blocks(const QuantizerSpec& spec, const std::string& dtype) {
    const char* const dim = spec.scaling == Scaling::Block128x128 ? "block_scaling_dim=2" : "block_scaling_dim=1";
    return made("Float8BlockQuantizer", "float8_blockwise_tensor",
                joined({dtype, "rowwise=True", "columnwise=True", dim}, "force_pow_2_scales", spec.scale));
  }

  PythonCall nvfp4(const QuantizerSpec& spec) {
    std::vector<std::string> arguments = {"fp4_dtype=" + use(spec.format)};
    if (spec.transformsColumnwise) arguments.insert(arguments.end(), {"with_rht=True", "with_post_rht_amax=True"});
    if (spec.scaling == Scaling::Nv16x16) arguments.emplace_back("with_2d_quantization=True");
    if (spec.roundsStochastically) arguments.emplace_back("stochastic_rounding=True");
    if (spec.scaling == Scaling::NvRow1x16) arguments.emplace_back("row_scaled_nvfp4=True");
    if (spec.fourOverSix) appendFourOverSix(*spec.fourOverSix, arguments);
    return made("NVFP4Quantizer", "nvfp4_tensor", std::move(arguments));
  }

  static void appendFourOverSix(const FourOverSix& options, std::vector<std::string>& arguments) {
    arguments.insert(arguments.end(),
                     {"nvfp4_use_4over6=True", fmt::format("nvfp4_e4m3_max={}", options.scaleMax),
                      fmt::format("nvfp4_4over6_err_mode=\"{}\"", options.isBySquares ? "MSE" : "MAE")});
  }

  PythonCall request() {
    m_imports["transformer_engine.pytorch.quantization"].insert("DelayedScalingRequest");
    return {"DelayedScalingRequest",
            {"fp8_format=recipe.Format." + m_delayed->text("fp8_format"),
             fmt::format("margin={}", m_delayed->integer("margin")),
             fmt::format("amax_history_len={}", m_delayed->integer("amax_history_len")),
             "amax_compute_algo=" + pythonText(m_delayed->text("amax_compute_algo")),
             "reduce_amax=" + pythonBool(m_delayed->boolean("reduce_amax"))}};
  }

  std::optional<Attributes> m_delayed;
  std::map<std::string, std::set<std::string>> m_imports;
};

/// Ops that have the same quantizers for a tensor.
struct Group {
  TensorQuantizers quantizers;
  std::vector<NodeId> nodes;
};

std::vector<Group> groupsOf(const Graph& graph, TensorType type) {
  std::vector<Group> groups;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (!node.operation->isQuantizable || node.operation->isView) continue;
    const TensorQuantizers& own = quantizersOf(node, type);
    const auto known = std::ranges::find(groups, own, &Group::quantizers);
    if (known == groups.end())
      groups.push_back({own, {id}});
    else
      known->nodes.push_back(id);
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), [](const Group& group) { return group.nodes.size(); });
  return groups;
}

class FactoryWriter {
 public:
  FactoryWriter(const Graph& graph, const Recipe& recipe) : m_graph(graph), m_quantizers(recipe) {}

  TeFactory write() {
    const std::string body = branch(TensorType::Weight) + branch(TensorType::GradOutput) +
                             "    # Inputs, and tensors without a role\n" + bodyOf(TensorType::Input, 4);
    m_factory.text = fmt::format(
        "def {}(role):\n    \"\"\"The quantizer of a tensor, by its role in a linear op.\"\"\"\n{}\n"
        "    tensor_type = getattr(role, \"tensor_type\", \"\")\n{}{}",
        kQuantizerFactory, m_quantizers.imports(),
        m_factory.names.empty() ? "" : "    name = getattr(role, \"name\", \"\")\n", body);
    noteViews();
    return std::move(m_factory);
  }

 private:
  std::string branch(TensorType type) {
    return fmt::format("    if tensor_type == \"{}\":\n{}", roleName(type), bodyOf(type, 8));
  }

  std::string bodyOf(TensorType type, std::size_t indent) {
    const std::vector<Group> groups = groupsOf(m_graph, type);
    if (groups.empty()) return m_quantizers.returned({}, indent);
    std::string text;
    for (std::size_t i = 1; i < groups.size(); ++i) {
      text += fmt::format("{}if name in [{}]:\n", std::string(indent, ' '), fmt::join(namesOf(groups[i]), ", "));
      text += m_quantizers.returned(groups[i].quantizers, indent + 4);
    }
    return text + m_quantizers.returned(groups[0].quantizers, indent);
  }

  std::vector<std::string> namesOf(const Group& group) {
    std::vector<std::string> names;
    for (const NodeId id : group.nodes) names.push_back(pythonText(m_factory.names[id] = m_graph.node(id).id));
    return names;
  }

  /// TransformerEngine requests the two quantizers of a Quantize without distinguishing them.
  void noteViews() {
    for (const Node& node : m_graph.nodes())
      if (node.operation->isView && node.operation->isQuantizable)
        m_factory.notes.push_back(
            fmt::format("{}: TransformerEngine requests the quantizers of te.ops.Quantize without a role, so both "
                        "passes get the one of an input.",
                        node.id));
  }

  const Graph& m_graph;
  Quantizers m_quantizers;
  TeFactory m_factory;
};

}  // namespace

TeFactory teFactory(const Graph& graph, const Recipe& recipe) { return FactoryWriter(graph, recipe).write(); }

}  // namespace fuseline
