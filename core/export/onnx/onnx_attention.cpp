// New nodes stand before those whose tensors they make anew; what nobody reads any more goes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_attention.h"

#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_attention_masks.h"
#include "core/export/onnx/onnx_attention_parts.h"
#include "core/export/onnx/onnx_head_columns.h"
#include "core/export/onnx/onnx_new_nodes.h"
#include "core/export/onnx/onnx_node_names.h"
#include "core/export/onnx/onnx_rotary_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Why the heads of an operand do not stand as columns of one tensor.
const char* orderReason(const OnnxReading& reading, const AttentionOperand& operand) {
  const OnnxNode* const maker = reading.maker(operand.view.base);
  const bool isJoined = maker && (maker->op_type() == "Concat" || maker->op_type() == "ScatterND");
  return isJoined ? "its queries, keys or values are joined from several tensors, such as those of a cache"
                  : "queries, keys and values have different orders of axes";
}

/// Why a node of attention is none of the op's.
const char* wholeReason(const OnnxNode& node) {
  const auto hasAny = [&](std::initializer_list<int> inputs) {
    return std::ranges::any_of(inputs, [&](int input) { return !inputOf(node, input).empty(); });
  };
  const bool isStandard = node.domain().empty();
  const bool hasPast = isStandard                                ? hasAny({4, 5})
                       : node.op_type() == "MultiHeadAttention"  ? hasAny({6, 7})
                       : node.op_type() == "GroupQueryAttention" ? hasAny({3, 4})
                                                                 : hasAny({4});
  if (hasPast) return "it appends to a cache of keys and values, which DotProductAttention does not";
  const auto isGiven = [](const std::string& output) { return !output.empty(); };
  if (std::any_of(node.output().begin() + 1, node.output().end(), isGiven))
    return "it has more outputs than DotProductAttention, such as keys and values for a later call";
  if (node.op_type() == "MultiHeadAttention" && hasAny({4}))
    return "its key_padding_mask is not of shape [batch, keys] or [batch]";
  return "an input is not known before a run, or has no counterpart in DotProductAttention";
}

bool isWholeAttention(const OnnxNode& node) {
  constexpr std::array kTypes = {"Attention", "MultiHeadAttention", "GroupQueryAttention"};
  return node.output_size() > 0 && std::ranges::find(kTypes, node.op_type()) != kTypes.end();
}

std::string unknownRotationText(const std::vector<std::string>& tensors) {
  return fmt::format(
      "{} {} no RotaryPositionEmbedding: its angles are not known before a run, or are not those of tokens "
      "in order from one position on.",
      nameList(tensors), tensors.size() == 1 ? "is" : "are");
}

class Rewriter {
 public:
  Rewriter(::onnx::GraphProto& graph, const AttentionRewriteOptions& options)
      : m_graph(graph),
        m_options(options),
        m_reading(graph),
        m_numbers(m_reading, options.symbols, options.folder),
        m_openNumbers(m_reading, openDoubled(options), options.folder),
        m_views(m_reading, m_numbers),
        m_nodes(graph, m_reading, m_views),
        m_columns(m_nodes, m_views, options.misfits) {
    for (int i = 0; i < graph.node_size(); ++i)
      for (const std::string& input : graph.node(i).input()) m_consumers[m_reading.source(input)].push_back(i);
  }

  void run() {
    for (int position = 0; position < m_graph.node_size(); ++position) {
      const OnnxNode& node = m_graph.node(position);
      m_nodes.setPosition(position);
      if (auto rotary = rotaryAt(m_reading, m_views, m_numbers, node)) {
        if (!isPartOfConcat(node)) addRotary(std::move(*rotary));
      } else if (auto attention = attentionAt(m_reading, m_views, m_numbers, node)) {
        addAttention(std::move(*attention));
      } else if (isWholeAttention(node)) {
        refuse(node.output(0), wholeReason(node));
      } else if (node.op_type() == "RotaryEmbedding") {
        m_unknownRotations.push_back(node.output(0));
      }
    }
    if (m_nodes.isEmpty()) return;
    simplify();
    m_columns.addSplits();
    m_nodes.write(m_replaced);
  }

  std::vector<std::pair<std::string, Tensor>> takeConstants() { return std::move(m_constants); }
  std::set<std::string> takeNeededNumbers() { return std::move(m_neededNumbers); }
  std::vector<std::string> reasons() const {
    std::vector<std::string> texts;
    for (const auto& [reason, tensors] : m_reasons) {
      std::string text = fmt::format("Attention was not recognized because {}: {}", reason, shown(tensors.front()));
      if (tensors.size() > 1) text += fmt::format(" and {} more", tensors.size() - 1);
      texts.push_back(text + ".");
    }
    if (!m_unknownRotations.empty()) texts.push_back(unknownRotationText(m_unknownRotations));
    return texts;
  }

 private:
  /// Constants of the model are made for its own numbers.
  static std::map<std::string, std::int64_t> openDoubled(const AttentionRewriteOptions& options) {
    auto symbols = options.symbols;
    for (auto& [name, value] : symbols)
      if (!options.literals.contains(name)) value *= 2;
    return symbols;
  }

  bool refuse(const std::string& tensor, const char* reason) {
    m_reasons[reason].push_back(tensor);
    return false;
  }

  // ---- results

  /// The new tensor has tokens in the order of the layout; `output`, which the model has, is a view of it. before: the
  /// product of leading extents in front of its axis of tokens.
  bool setResult(const std::string& output, const std::string& made, const HeadLayout& layout, std::int64_t S,
                 std::int64_t D, std::int64_t before) {
    const std::int64_t B = layout.batch, H = layout.heads;
    const Shape stored = layout.isSbhd ? Shape{S, B, H, D} : Shape{B, S, H, D};
    std::vector<std::int64_t> order;
    if (before == B * H)
      order = layout.isSbhd ? std::vector<std::int64_t>{1, 2, 0, 3} : std::vector<std::int64_t>{0, 2, 1, 3};
    else if (before == (layout.isSbhd ? 1 : B))
      order = {0, 1, 2, 3};
    const auto extents = m_views.extents(output);
    if (order.empty() || !extents) return false;
    const std::vector<ViewFactors> axes = denseAxes(stored);
    ViewFactors factors;
    Shape ordered;
    for (const std::int64_t axis : order) {
      const ViewFactors& each = axes[static_cast<std::size_t>(axis)];
      factors.insert(factors.end(), each.begin(), each.end());
      ordered.push_back(stored[static_cast<std::size_t>(axis)]);
    }
    const auto grouped = regrouped(factors, *extents);
    if (!grouped) return false;
    m_views.set(output, {.base = made, .axes = *grouped});
    std::string last = m_nodes.reshaped(made, stored);
    if (order != std::vector<std::int64_t>{0, 1, 2, 3}) {
      const std::string turned = ordered == *extents ? output : made + "/turned";
      if (turned != output) m_nodes.declare(turned, ordered, output);
      m_nodes.addTranspose(last, turned, order);
      last = turned;
    }
    if (last != output) m_nodes.add(ordered == *extents ? "Identity" : "Reshape", {last}, output);
    m_replaced.insert(m_nodes.position());
    return true;
  }

  // ---- rotary embeddings

  bool isPartOfConcat(const OnnxNode& node) {
    if (node.op_type() != "Add") return false;
    const auto readers = m_consumers.find(node.output(0));
    if (readers == m_consumers.end() || readers->second.size() != 1) return false;
    const OnnxNode& reader = m_graph.node(readers->second.front());
    return reader.op_type() == "Concat" && rotaryAt(m_reading, m_views, m_numbers, reader).has_value();
  }

  bool addRotary(RotaryParts found) {
    const std::string made = found.output + "/rotary";
    if (m_options.misfits.contains(made)) return false;
    AttentionOperand x{.view = found.x};
    ViewFactors lead;
    std::int64_t before = 1;
    for (std::size_t axis = 0; axis + 1 < found.x.axes.size(); ++axis) {
      if (axis == found.tokens) continue;
      lead.insert(lead.end(), found.x.axes[axis].begin(), found.x.axes[axis].end());
      if (axis < found.tokens) before *= extentOf(found.x.axes[axis]);
    }
    x.view.axes = {lead, found.x.axes[found.tokens], found.x.axes.back()};
    const HeadLayout layout = headLayout(x, {});
    const auto tokens = m_columns.tokensOf(x, layout);
    if (!tokens) return refuse(found.output, "the channels of a head are not contiguous before the rotary embedding");
    const std::int64_t S = extentOf(x.tokens()), D = extentOf(x.channels());
    m_nodes.declare(made, *m_views.extents(*tokens), *tokens);
    found.attributes["tensor_format"] = layout.isSbhd ? "sbhd" : "bshd";
    m_nodes.addOperation("RotaryPositionEmbedding", {*tokens}, made, found.attributes, "x");
    const auto output = m_views.extents(found.output);
    // Merged heads come out as they went in.
    if (output && output->size() == 3 && found.x.axes.size() == 4) before = layout.batch;
    if (setResult(found.output, made, layout, S, D, before)) return true;
    m_nodes.removeLast();
    return refuse(found.output, "TransformerEngine does not support the order of its axes");
  }

  // ---- attention

  bool addAttention(AttentionParts parts) {
    const std::string made = parts.output + "/attention";
    const std::string result = parts.isMerged ? parts.output : made;
    if (m_options.misfits.contains(result)) return false;
    if (!alignLeads({&parts.q.view.axes[0], &parts.k.view.axes[0], &parts.v.view.axes[0]}))
      return refuse(parts.output, "queries, keys and values have different numbers of heads");
    const HeadLayout layout = headLayout(parts.q, parts.k.lead());
    const auto numGroups = groupsOf(parts, layout);
    if (!numGroups) return refuse(parts.output, "keys and values are not shared by neighboring heads");
    for (AttentionOperand* const operand : {&parts.q, &parts.k, &parts.v}) operand->view.factor = 1.0;
    Json attributes = parts.attributes;
    std::vector<std::string> inputs;
    for (const AttentionOperand* const operand : {&parts.q, &parts.k, &parts.v}) {
      const auto tokens = m_columns.tokensOf(*operand, layout);
      if (!tokens) return refuse(parts.output, orderReason(m_reading, *operand));
      inputs.push_back(*tokens);
    }
    const std::int64_t S = extentOf(parts.q.tokens()), D = extentOf(parts.q.channels()),
                       Dv = extentOf(parts.v.channels());
    if (D != extentOf(parts.k.channels()) || extentOf(parts.k.tokens()) != extentOf(parts.v.tokens()) ||
        layout.heads >= kLeastPrime || D >= kLeastPrime)
      return refuse(parts.output, "queries, keys and values have different sizes");
    std::string note = parts.note;
    if (!setMask(parts, layout, made, attributes, inputs, note)) return false;
    setNumbers(parts, layout, *numGroups, attributes);
    std::string ports = "x,k,v";
    if (inputs.size() > 3) ports += ",core_attention_bias";
    if (!parts.sinks.empty()) {
      if (std::ssize(parts.sinks) != layout.heads) return refuse(parts.output, "it does not have one sink a head");
      attributes["softmax_type"] = "learnable";
      inputs.push_back(m_nodes.addNumbers(made + "_sinks", parts.sinks));
      ports += fmt::format(",{}", kSinksPort);
    }
    const Shape stored =
        layout.isSbhd ? Shape{S, layout.batch, layout.heads * Dv} : Shape{layout.batch, S, layout.heads * Dv};
    if (parts.isMerged && m_views.extents(parts.output) == stored) {
      m_nodes.addOperation("DotProductAttention", inputs, parts.output, attributes, ports, note);
      m_nodes.noteMade(parts.output);
      m_replaced.insert(m_nodes.position());
      return true;
    }
    m_nodes.declare(made, stored, inputs[0]);
    m_nodes.addOperation("DotProductAttention", inputs, made, attributes, ports, note);
    const std::int64_t before = parts.isMerged ? layout.batch : layout.batch * layout.heads;
    if (setResult(parts.output, made, layout, S, Dv, before)) return true;
    m_nodes.removeLast();
    return refuse(parts.output, "TransformerEngine does not support the order of its axes");
  }

  /// Heads of keys and values. Nothing: they are repeated in another way.
  static std::optional<std::int64_t> groupsOf(const AttentionParts& parts, const HeadLayout& layout) {
    std::optional<std::int64_t> groups;
    for (const AttentionOperand* const operand : {&parts.k, &parts.v}) {
      std::int64_t own = 1;
      for (std::size_t i = operand->lead().size(); i-- > layout.numBatch;) {
        const ViewFactor& factor = operand->lead()[i];
        const bool isShared = factor.stride == 0;
        if (isShared && own > 1) return std::nullopt;
        if (!isShared) own *= factor.extent;
      }
      if (groups && *groups != own) return std::nullopt;
      groups = own;
    }
    return groups;
  }

  static double shortestOf(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

  static void setNumbers(const AttentionParts& parts, const HeadLayout& layout, std::int64_t groups, Json& attributes) {
    const std::int64_t D = extentOf(parts.q.channels()), Dv = extentOf(parts.v.channels());
    attributes["num_attention_heads"] = layout.heads;
    attributes["kv_channels"] = D == Dv ? Json{D} : Json{D, Dv};
    if (groups != layout.heads) attributes["num_gqa_groups"] = groups;
    attributes["qkv_format"] = layout.isSbhd ? "sbhd" : "bshd";
    const double usual = 1.0 / std::sqrt(static_cast<double>(D));
    constexpr double kRounding = 2e-7;
    constexpr double kHalfRounding = 1e-3;  // of a scale that was rounded to 16 bits on both sides
    const double distance = std::abs(parts.scale - usual) / usual;
    const bool isHalf = distance < kHalfRounding && distance > 1e-5;
    if (distance > kRounding * 4 && !isHalf) attributes["softmax_scale"] = shortestOf(parts.scale);
    if (parts.softcap > 0.0) attributes["softcap"] = shortestOf(parts.softcap);
  }

  /// With as many queries as keys, masks of both corners are one.
  static Json ofTopLeft(Json mask) {
    constexpr std::string_view kCorner = "_bottom_right";
    auto type = mask.value("attn_mask_type", std::string());
    if (type.ends_with(kCorner)) mask["attn_mask_type"] = type.substr(0, type.size() - kCorner.size());
    return mask;
  }

  /// False: why, was said.
  bool setMask(const AttentionParts& parts, const HeadLayout& layout, const std::string& made, Json& attributes,
               std::vector<std::string>& inputs, std::string& note) {
    if (!attributes.contains("attn_mask_type")) attributes["attn_mask_type"] = "no_mask";
    const auto isMasking = [](const ScoreStep& step) { return step.kind != ScoreStep::Kind::Reshape; };
    if (std::ranges::none_of(parts.steps, isMasking)) return true;
    const auto added = addedScores(parts, m_numbers, layout.heads);
    if (!added) return setRuntimeBias(parts, layout, made, attributes, inputs, note);
    auto named = namedMask(*added);
    OnnxNumbers* const numbers = m_numbers.atOtherExtents();
    auto other = numbers ? addedScores(parts, *numbers, layout.heads) : std::nullopt;
    if (numbers && !other) other = addedScores(parts, m_openNumbers, layout.heads);
    const auto namedOther = other ? namedMask(*other) : named;
    if (named && namedOther && named != namedOther && named == ofTopLeft(*namedOther)) named = namedOther;
    const bool isAlways = namedOther == named;
    if (named && isAlways && attributes["attn_mask_type"] == "no_mask" && !attributes.contains("window_size")) {
      attributes.update(*named);
      return true;
    }
    return setConstantBias(*added, other.value_or(*added), parts, layout, made, attributes, inputs, note);
  }

  /// other: at other extents. Values that differ in spite of one shape would be wrong there without a word.
  bool setConstantBias(const NumberArray& added, const NumberArray& other, const AttentionParts& parts,
                       const HeadLayout& layout, const std::string& made, Json& attributes,
                       std::vector<std::string>& inputs, std::string& note) {
    const bool isFixed = other.shape == added.shape;
    if (isFixed && other.values != added.values)
      return refuse(parts.output, "the bias of its scores depends on extents that its shape does not show");
    const std::string bias = made + "_bias";
    m_nodes.declare(bias,
                    {other.shape[0] == 1 ? 1 : layout.batch, other.shape[1] == 1 ? 1 : layout.heads,
                     extentOf(parts.q.tokens()), extentOf(parts.k.tokens())},
                    inputs[0]);
    const DType dtype = floatTypeOf(m_reading.elementType(parts.output)).value_or(DType::F32);
    m_constants.emplace_back(bias, Tensor::fromDoubles({.dtype = dtype, .shape = added.shape}, added.values));
    attributes["core_attention_bias_type"] = "post_scale_bias";
    inputs.push_back(bias);
    note = "the bias that the model adds to the scores became an input; its values are among the weights";
    note += isFixed ? "."
                    : fmt::format(", but only those of shape [{}]. For other sizes, import with --set.",
                                  fmt::join(added.shape, ", "));
    return true;
  }

  /// One tensor that a run computes.
  bool setRuntimeBias(const AttentionParts& parts, const HeadLayout& layout, const std::string& made, Json& attributes,
                      std::vector<std::string>& inputs, std::string& note) {
    std::vector<const ScoreStep*> steps;
    for (const ScoreStep& step : parts.steps)
      if (step.kind != ScoreStep::Kind::Reshape) steps.push_back(&step);
    if (steps.size() != 1 || steps.size() != parts.steps.size())
      return refuse(parts.output, "several masks are computed at run time");
    std::string bias = steps.front()->tensor;
    if (steps.front()->kind == ScoreStep::Kind::Mask) bias = asBias(*steps.front(), made, parts.output);
    const auto extents = m_views.extents(bias);
    const Shape matrix = {extentOf(parts.q.tokens()), extentOf(parts.k.tokens())};
    if (!extents || extents->size() > 4) return refuse(parts.output, "the shape of its mask is unknown");
    Shape wanted = *extents;
    wanted.insert(wanted.begin(), 4 - wanted.size(), 1);
    const bool fits = (wanted[0] == 1 || wanted[0] == layout.batch) && (wanted[1] == 1 || wanted[1] == layout.heads);
    const bool isNumber =
        needsNumber(wanted[0], layout.batch) | needsNumber(wanted[2], matrix[0]) | needsNumber(wanted[3], matrix[1]);
    if (!fits || isNumber)
      return refuse(parts.output, "its mask does not have the shape [batch, heads, queries, keys]");
    wanted[2] = matrix[0];
    wanted[3] = matrix[1];
    const auto rows = numQueries(parts);
    if (numElements(wanted) == numElements(*extents))
      bias = m_nodes.reshaped(bias, wanted);
    else if (rows)
      bias = expanded(bias, wanted, *rows, parts);
    else
      return refuse(parts.output, "its number of queries is unknown");
    attributes["core_attention_bias_type"] = "post_scale_bias";
    inputs.push_back(bias);
    note = "the mask that the model computes from its inputs became an input, which is added to the scores.";
    return true;
  }

  /// A mask of a number of the model needs it as a number everywhere.
  bool needsNumber(std::int64_t ofMask, std::int64_t extent) {
    if (ofMask == 1 || ofMask >= kLeastPrime || extent < kLeastPrime) return false;
    const std::size_t before = m_neededNumbers.size();
    for (const std::string& literal : m_options.literals)
      if (const auto symbol = m_options.symbols.find(literal);
          symbol != m_options.symbols.end() && symbol->second == ofMask)
        m_neededNumbers.insert(literal);
    return m_neededNumbers.size() > before;
  }

  /// Queries in a run with the defaults of symbols. The output is [B, heads, S, D] or [B, S, heads * D].
  std::optional<std::int64_t> numQueries(const AttentionParts& parts) const {
    if (const auto scores = m_numbers.extents(parts.scores); scores && scores->size() > 1)
      return (*scores)[scores->size() - 2];
    const auto output = m_numbers.extents(parts.output);
    const std::size_t rank = output ? output->size() : 0;
    return rank == 4 || rank == 3 ? std::optional((*output)[rank - 2]) : std::nullopt;
  }

  /// The shape [1, 1, rows, 1], with the rows of a run where an input of the model has as many. extent: in OnnxViews.
  std::string shapeOfRows(const std::string& name, std::int64_t extent, std::int64_t rows) {
    for (const auto& input : m_graph.input()) {
      const auto extents = m_views.extents(input.name());
      const auto axis = extents ? std::ranges::find(*extents, extent) : Shape::const_iterator();
      if (extent < kLeastPrime || !extents || axis == extents->end()) continue;
      const std::int64_t first = axis - extents->begin();
      m_nodes.add("Shape", {input.name()}, name + "_of_input");
      const std::string begin = m_nodes.addIntegers(name + "_begin", {first}),
                        end = m_nodes.addIntegers(name + "_end", {first + 1});
      m_nodes.add("Slice", {name + "_of_input", begin, end}, name + "_rows");
      const std::string ones = m_nodes.addIntegers(name + "_ones", {1, 1}),
                        one = m_nodes.addIntegers(name + "_one", {1});
      ::onnx::AttributeProto& attribute = *m_nodes.add("Concat", {ones, name + "_rows", one}, name).add_attribute();
      attribute.set_name("axis");
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(0);
      return name;
    }
    return m_nodes.addIntegers(name, {1, 1, rows, 1});
  }

  std::string expanded(const std::string& bias, const Shape& wanted, std::int64_t rows, const AttentionParts& parts) {
    const std::string whole = bias + "/rows";
    if (m_nodes.hasMade(whole)) return whole;
    m_nodes.declare(whole, wanted, parts.output);
    m_nodes.add("Expand", {bias, shapeOfRows(whole + "_shape", wanted[2], rows)}, whole);
    return whole;
  }

  /// 0 where it keeps the scores.
  std::string asBias(const ScoreStep& step, const std::string& made, const std::string& like) {
    const std::string bias = made + "_condition";
    if (const auto extents = m_views.extents(step.tensor)) m_nodes.declare(bias, *extents, like);
    const std::string zero = m_nodes.addNumber(bias + "_zero", 0.0F),
                      fill = m_nodes.addNumber(bias + "_fill", static_cast<float>(step.fill));
    m_nodes.add("Where", {step.tensor, step.isKeptIfTrue ? zero : fill, step.isKeptIfTrue ? fill : zero}, bias);
    return bias;
  }

  // ---- the graph

  /// Removes nodes that only move outputs of new nodes and keep their order.
  void simplify() {
    constexpr std::array kTypes = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"};
    for (int position = 0; position < m_graph.node_size(); ++position) {
      const OnnxNode& node = m_graph.node(position);
      if (std::ranges::find(kTypes, node.op_type()) == kTypes.end() || m_replaced.contains(position)) continue;
      const auto view = m_views.of(node.output(0));
      if (!view || !m_nodes.hasMade(view->base) || view->offset != 0 || view->factor != 1.0) continue;
      ViewFactors all;
      for (const ViewFactors& axis : view->axes) all.insert(all.end(), axis.begin(), axis.end());
      const auto base = m_views.extents(view->base), own = m_views.extents(node.output(0));
      all = mergedFactors(all);
      const bool isWhole = base && own && numElements(*base) == numElements(*own) &&
                           (all.empty() || (all.size() == 1 && all.front().stride == 1));
      if (!isWhole) continue;
      m_nodes.setPosition(position);
      m_nodes.add(*base == *own ? "Identity" : "Reshape", {view->base}, node.output(0));
      m_replaced.insert(position);
    }
  }

  ::onnx::GraphProto& m_graph;
  const AttentionRewriteOptions& m_options;
  OnnxReading m_reading;
  OnnxNumbers m_numbers, m_openNumbers;
  OnnxViews m_views;
  std::map<std::string, std::vector<int>> m_consumers;
  OnnxNewNodes m_nodes;
  OnnxHeadColumns m_columns;
  std::set<int> m_replaced;  // nodes of the model
  std::vector<std::pair<std::string, Tensor>> m_constants;
  std::map<std::string, std::vector<std::string>> m_reasons;
  std::vector<std::string> m_unknownRotations;
  std::set<std::string> m_neededNumbers;
};

}  // namespace

AttentionRewrite::AttentionRewrite(::onnx::GraphProto& graph, const AttentionRewriteOptions& options)
    : m_graph(graph), m_nodes(graph.node()), m_numTypes(graph.value_info_size()) {
  Rewriter rewriter(graph, options);
  rewriter.run();
  m_constants = rewriter.takeConstants();
  m_reasons = rewriter.reasons();
  m_neededNumbers = rewriter.takeNeededNumbers();
}

AttentionRewrite::~AttentionRewrite() {
  m_graph.mutable_node()->Swap(&m_nodes);
  auto& types = *m_graph.mutable_value_info();
  types.DeleteSubrange(m_numTypes, types.size() - m_numTypes);
}

}  // namespace fuseline
