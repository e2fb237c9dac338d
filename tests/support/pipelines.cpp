// Builders of graphs.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pipelines.h"

#include "core/ops/catalog.h"
#include "core/quant/apply_recipe.h"

#include <cctype>
#include <stdexcept>

namespace fuseline::testing {

namespace {

Attributes completed(const FusibleOperation& operation, const Attributes& given, const TensorSpec& input) {
  Attributes attributes;
  for (const AttributeSpec& spec : operation.attributes) attributes.set(spec.name, spec.defaultValue);
  if (operation.attribute("in_features")) attributes.set("in_features", input.cols());
  if (operation.attribute("size")) attributes.set("size", input.cols());
  const bool isGrouped = operation.attribute("num_groups") && !operation.attribute("group_topk");
  if (isGrouped) attributes.set("num_groups", std::int64_t{3});
  if (operation.attribute("p")) attributes.set("p", 0.4);
  if (operation.attribute("scale")) attributes.set("scale", 1.5);
  if (operation.attribute("tanh_clamp_scale")) attributes.set("tanh_clamp_scale", 1.5);
  if (operation.attribute("normalized_shape"))
    attributes.set("normalized_shape", std::vector<std::int64_t>{input.cols()});
  if (operation.attribute("shape")) attributes.set("shape", std::vector<std::int64_t>{-1, 1, input.cols()});
  for (const auto& [name, value] : given) attributes.set(name, value);
  return attributes;
}

std::string defaultId(const Link& link, std::size_t position) {
  std::string id = link.operation + std::to_string(position);
  for (char& letter : id) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return id;
}

/// Like the main input, or without its last axis: one value a row. Counts have one a group, or one a row. A weight has
/// some rows.
TensorSpec extraSpec(const FusibleOperation& operation, const Attributes& attributes, std::size_t port,
                     TensorSpec main) {
  constexpr std::int64_t kWeightRows = 21;
  const Port& input = operation.inputs[port];
  if (input.elements == PortElements::Counts) {
    if (operation.attribute("num_groups")) return {.dtype = DType::I64, .shape = {attributes.integer("num_groups")}};
    const bool areSums = input.name.starts_with("cu_seqlens");
    if (areSums || input.name == "start_positions") {
      const std::size_t batchAxis = attributes.has("qkv_format") && attributes.text("qkv_format") == "bshd" ? 0 : 1;
      const std::int64_t sequences = main.shape.size() < 2 ? 1 : main.shape[batchAxis];
      return {.dtype = DType::I64, .shape = {areSums ? sequences + 1 : sequences}};
    }
    main.dtype = DType::I64;
  }
  if (input.name == "weight") return {.dtype = main.dtype, .shape = {kWeightRows, main.cols()}};
  if (operation.inputs[port].shape != operation.inputs[0].shape) main.shape.pop_back();
  return main;
}

ValueId valueNamed(const GraphBuilder& builder, const std::string& name) {
  const ValueId found = builder.partial().findValue(name);
  if (found < 0) throw std::invalid_argument("no value named " + name);
  return found;
}

/// The value of the extra input `port`, from the source that the link names.
ValueId extraValue(GraphBuilder& builder, const Link& link, const FusibleOperation& operation, std::size_t port,
                   const std::string& id, const TensorSpec& spec) {
  const bool isFirst = port == 1;
  const std::string& from = isFirst                              ? link.extraFrom
                            : port - 2 < link.furtherFrom.size() ? link.furtherFrom[port - 2]
                                                                 : std::string();
  if (from.empty()) return builder.addInput(id + "_" + operation.inputs[port].name, spec);
  return valueNamed(builder, from);
}

ValueId append(GraphBuilder& builder, const Link& link, std::size_t position, ValueId main) {
  const FusibleOperation* operation = builtinOperations().find(link.operation);
  if (!operation) throw std::invalid_argument("no op named " + link.operation);
  if (!link.mainFrom.empty()) main = valueNamed(builder, link.mainFrom);
  const TensorSpec spec = builder.partial().value(main).spec;
  const std::string id = link.id.empty() ? defaultId(link, position) : link.id;
  Attributes attributes = completed(*operation, link.attributes, spec);
  const Result<OperationPointer> own = specialised(*operation, attributes);
  if (!own) throw std::invalid_argument(own.error().message);
  std::vector<ValueId> inputs{main};
  for (std::size_t port = 1; port < (*own)->inputs.size(); ++port)
    inputs.push_back(extraValue(builder, link, **own, port, id, extraSpec(**own, attributes, port, spec)));
  if (link.isSwapped) std::swap(inputs[0], inputs[1]);
  Result<NodeId> node = builder.addNode(id, id, *own, std::move(attributes), inputs);
  if (!node) throw std::invalid_argument(node.error().message);
  return builder.partial().node(*node).outputs.front();
}

bool isInside(const std::string& path, const std::string& outer) {
  return path == outer || path.starts_with(outer + ".");
}

/// Leaves and enters Sequentials until `path` is the innermost. open: those around the last op, outermost first.
void moveTo(const std::string& path, GraphBuilder& builder, std::vector<std::string>& open) {
  for (; !open.empty() && !isInside(path, open.back()); open.pop_back()) builder.leaveSequential();
  if (path.empty() || (!open.empty() && open.back() == path)) return;
  builder.enterSequential(path, "");
  open.push_back(path);
}

/// A layer that does not fit the recipe stays as it is.
Graph quantized(Graph graph, const std::optional<Recipe>& recipe) {
  std::vector<Diagnostic> diagnostics;
  return recipe ? applyRecipe(std::move(graph), *recipe, diagnostics) : std::move(graph);
}

}  // namespace

Link link(std::string operation, std::string id, std::string extraFrom) {
  return {.operation = std::move(operation), .id = std::move(id), .extraFrom = std::move(extraFrom)};
}

Link with(Link link, std::string attribute, AttributeValue value) {
  link.attributes.set(std::move(attribute), std::move(value));
  return link;
}

std::vector<Link> expertLinks(std::int64_t width, const std::optional<Link>& linear) {
  constexpr std::int64_t kExperts = 4;
  Link permute = with(link("MoEPermute", "permute", "route.indices"), "num_experts", kExperts);
  Link experts = with(link("GroupedLinear", "experts", "permute.split_sizes"), "num_groups", kExperts);
  experts = with(with(std::move(experts), "out_features", width), "bias", false);
  Link unpermute = link("MoEUnpermute", "unpermute", "permute.row_id_map");
  unpermute.furtherFrom = {"route.y"};
  return {with(link("MakeExtraOutput", "save"), "in_place", false),
          fuseline::testing::linear(kExperts, "gate"),
          with(link("TopKRouter", "route"), "topk", std::int64_t{2}),
          reading("save.extra", with(std::move(permute), "align_size", std::int64_t{32})),
          reading("permute.y", linear.value_or(experts)),
          std::move(unpermute)};
}

Link quantizeLink(bool forward, bool backward, std::string id) {
  return with(with(link("Quantize", std::move(id)), "forward", forward), "backward", backward);
}

Link sampleLink(const std::string& operation) {
  const bool needsWidth = builtinOperations().find(operation)->attribute("out_features") != nullptr;
  return needsWidth ? with(link(operation), "out_features", std::int64_t{21}) : link(operation);
}

Link linear(std::int64_t outFeatures, std::string id) {
  return with(link("BasicLinear", std::move(id)), "out_features", outFeatures);
}

constexpr std::int64_t kChannels = 8;

std::vector<Link> packedHeads(std::int64_t heads, std::int64_t groups) {
  const std::vector<std::int64_t> sizes = {heads * kChannels, groups * kChannels, groups * kChannels};
  const std::int64_t width = (heads + 2 * groups) * kChannels;
  return {linear(width, "qkv"), with(link("Reshape"), "shape", std::vector<std::int64_t>{-1, 1, width}),
          with(link("Split", "split"), "sizes", sizes)};
}

Link attentionOf(std::int64_t heads, std::int64_t groups, std::array<std::string, 3> from) {
  Link attention = with(link("DotProductAttention", "attention"), "num_attention_heads", heads);
  attention = with(with(attention, "num_gqa_groups", groups), "kv_channels", std::vector<std::int64_t>{kChannels});
  attention.mainFrom = from[0];
  attention.extraFrom = from[1];
  attention.furtherFrom = {from[2]};
  return attention;
}

Link rotaryOf(std::string id, std::string from) {
  return reading(std::move(from), with(link("RotaryPositionEmbedding", std::move(id)), "dim", kChannels));
}

Link inPlace(Link link, bool value) { return with(std::move(link), "in_place", value); }

Link reading(std::string value, Link link) {
  link.mainFrom = std::move(value);
  return link;
}

Link inside(std::string path, Link link) {
  link.sequential = std::move(path);
  return link;
}

Link swapped(Link link) {
  link.isSwapped = true;
  return link;
}

Graph chain(DType dtype, Shape shape, const std::vector<Link>& links, const ChainOptions& options) {
  GraphBuilder builder;
  ValueId main = builder.addInput("x", {.dtype = dtype, .shape = std::move(shape)}, options.inputRequiresGradient);
  std::vector<std::string> open;
  for (std::size_t i = 0; i < links.size(); ++i) {
    moveTo(links[i].sequential, builder, open);
    main = append(builder, links[i], i, main);
  }
  builder.addOutput("y", main);
  for (const std::string& name : options.extraOutputs) builder.addOutput(name, builder.partial().findValue(name));
  return quantized(std::move(builder).finish(options.pass), recipeOf(options));
}

std::optional<Recipe> recipeOf(const ChainOptions& options) {
  if (options.recipe.empty()) return std::nullopt;
  return *Recipe::create(*findRecipe(options.recipe), options.recipeFields);
}

}  // namespace fuseline::testing
