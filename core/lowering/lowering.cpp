// Lowers ops in topological order. A problem of one op is reported at its origin; downstream ops are skipped silently,
// so that only root causes are listed. An instance of a block is lowered in its place, op by op.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/lowering.h"

#include "core/document/block_operation.h"
#include "core/lowering/attribute_repairs.h"
#include "core/lowering/extra_readers.h"
#include "core/lowering/first_layers.h"
#include "core/lowering/op_parts.h"
#include "core/lowering/section_oddities.h"
#include "core/ops/external.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline {

namespace {

// State of a lowering, shared by the pipeline and the instances of its blocks.
struct LoweringContext {
  LoweringContext(const PipelineDocument& written, const LoweringOptions& options, const SourceMap* sourceMap)
      : document(written),
        isUnreadable(sourceMap && sourceMap->places.empty()),
        sink(sourceMap),
        operations(options.catalog ? *options.catalog : builtinOperations()),
        symbols(document, options, sink),
        attributes(symbols, sink),
        blocks(document, sink),
        layers(document.pipeline(), symbols, sink),
        pipeline(layers.block(), "", {sink, symbols, attributes, operations, blocks}) {
    for (const BlockTable::Block& block : blocks.blocks()) {
      const InsideBlock scope(sink, block.firstUse);
      sections.emplace(block.name, Section(*block.block, block.name, {sink, symbols, attributes, operations, blocks}));
    }
  }
  LoweringContext(const LoweringContext&) = delete;
  LoweringContext& operator=(const LoweringContext&) = delete;

  const PipelineDocument& document;
  const bool isUnreadable;
  DiagnosticSink sink;
  OperationTable operations;
  SymbolTable symbols;
  AttributeResolver attributes;
  BlockTable blocks;
  FirstLayers layers;
  Section pipeline;
  std::unordered_map<std::string, Section> sections;  // by name of the block
  std::unordered_set<const Section*> lowered;         // problems of a section itself are reported only once
  GraphBuilder builder;
  std::size_t numExpandedOps = 0;
};

using OptionalValues = std::vector<std::optional<ValueId>>;

// Where a section is lowered: the pipeline, an instance of a block, or, dry, a block by itself.
struct Place {
  std::string path;   // "layer1.attention"; empty: the pipeline
  std::string owner;  // the instance in the pipeline: "layer1"
  bool isDry = false;
};

/// "1 input", "2 inputs".
std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// In TransformerEngine a nested Sequential is called with one tensor and gives one; extra tensors end at its border.
void warnOfExtraPorts(DiagnosticSink& sink, const Section& section, std::size_t index) {
  const FusibleOperation& block = *section.type(index);
  if (block.inputs.size() == 1 && block.outputs.size() == 1) return;
  const DocumentOp& written = section.op(index);
  sink.report(Severity::Warning, "sequential-ports", {attributePointer(index, kSequentialAttribute), written.id, {}},
              fmt::format("{}: {} is on, but block {} has {} and {}. TransformerEngine's nested Sequential has one "
                          "input and one output, so this runs only in Fuseline.",
                          written.id, kSequentialAttribute, blockNameOf(written), counted(block.inputs.size(), "input"),
                          counted(block.outputs.size(), "output")))
      .repairs = {
      {fmt::format("Switch {} off", kSequentialAttribute), SetAttribute{written.id, kSequentialAttribute, nullptr}}};
}

class SectionLowering {
 public:
  /// `inputs`: the values of the section's inputs, as far as they are known.
  SectionLowering(LoweringContext& context, const Section& section, Place place, OptionalValues inputs)
      : m_context(context),
        m_section(section),
        m_wiring(section.wiring()),
        m_place(std::move(place)),
        m_parts(section, context.operations, m_place.path),
        m_repairs(section, m_parts, context.sink),
        m_isFirstTime(context.lowered.insert(&section).second),
        m_sink(context.sink),
        m_builder(context.builder),
        m_inputValues(std::move(inputs)) {}

  /// The values of the section's outputs, as far as they are known.
  OptionalValues run() {
    m_opValues.resize(m_section.block().ops.size());
    for (const std::size_t op : m_wiring.order()) lowerOp(op);
    if (m_isFirstTime) reportOddities(m_sink, m_context.document, m_context.isUnreadable, m_section, knownInputs());
    return outputValues();
  }

 private:
  const DocumentOp& op(std::size_t index) const { return m_section.op(index); }
  const FusibleOperation& type(std::size_t index) const { return *m_section.type(index); }
  // The values that feed an op; nullopt if one of them is not known.
  std::optional<std::vector<ValueId>> sourceValues(std::size_t index) const {
    std::vector<ValueId> values;
    for (const Source& source : m_wiring.sources(index)) {
      const auto value = valueOf(source);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }

  std::optional<ValueId> valueOf(const Source& source) const {
    if (source.kind == Source::Kind::Input) return m_inputValues[source.index];
    if (source.kind != Source::Kind::Op || m_opValues[source.index].empty()) return std::nullopt;
    return m_opValues[source.index][static_cast<std::size_t>(source.port)];
  }

  void lowerOp(std::size_t index) {
    if (!m_section.type(index)) return;
    if (op(index).isBypassed()) return bypass(index);
    const ResolvedAttributes& resolved = m_section.attributes(index);
    if (const BlockTable::Block* block = m_context.blocks.blockOf(op(index))) return lowerInstance(index, *block);
    const auto values = m_wiring.isNamed(index) ? sourceValues(index) : std::nullopt;
    const auto inputs = values ? std::optional(specsOf(*values)) : std::nullopt;
    if (m_isFirstTime)
      for (const AttributeSpec* spec : resolved.missing) m_repairs.reportMissing(index, *spec, inputs);
    if (!inputs || resolved.hasFailed || !resolved.missing.empty()) return;
    if (isExternal(type(index))) return cutAt(index, *values);
    const Result<std::vector<OpPart>> parts = m_parts.expand(index, resolved.values);
    if (!parts) return reportBadAttribute(m_sink, op(index), index, type(index), parts.error());
    InferenceProblem problem;
    if (!inferChain(*parts, *inputs, problem)) return m_repairs.reportMismatch(index, *inputs, problem);
    addNodes(index, *parts, *values);
    warnOfMixedDTypes(index, *inputs);
  }

  // Its inputs become outputs of the pipeline, and its outputs inputs, under the names of op tensors.
  void cutAt(std::size_t index, const std::vector<ValueId>& values) {
    InferenceProblem problem;
    const OpPart whole = m_parts.asWhole(index);
    const Result<std::vector<TensorSpec>> made = inferPart(whole, specsOf(values), problem);
    if (!made) return m_repairs.reportMismatch(index, specsOf(values), problem);
    for (std::size_t port = 0; port < values.size(); ++port)
      handOut(whole.id + "." + type(index).inputs[port].name, values[port]);
    for (std::size_t port = 0; port < made->size(); ++port)
      m_opValues[index].emplace_back(
          m_builder.addInput(whole.id + "." + type(index).outputs[port].name, (*made)[port]));
    if (!m_isFirstTime) return;
    m_sink.report(Severity::Note, kExternalCode, {opPointer(index), op(index).id, {}},
                  fmt::format("{} ({}) is not executed and not timed. Its inputs become outputs of the pipeline, its "
                              "outputs become inputs with random values from the seed.",
                              op(index).id, op(index).operation));
  }

  // Inputs of the pipeline, and outputs of other ops that are not executed, have no producer.
  void handOut(const std::string& name, ValueId value) {
    m_builder.addAlias(name, value);
    if (m_builder.partial().value(value).producer >= 0) m_builder.addOutput(name, value);
  }

  // Its main input is handed on as its main output. Nobody reads its other inputs, and it has no other outputs.
  void bypass(std::size_t index) {
    const auto value = m_wiring.isNamed(index) ? valueOf(m_wiring.sources(index).front()) : std::nullopt;
    const bool isRead = m_isFirstTime ? reportExtraReaders(index) : hasExtraReaders(index);
    if (!value || isRead || !keepsTensor(index, *value)) return;
    const std::string& port = type(index).outputs.front().name;
    m_opValues[index].resize(type(index).outputs.size());
    m_opValues[index].front() = value;
    m_builder.addAlias(m_parts.pathOf(index) + "." + port, *value);
    if (!m_isFirstTime || isLeftOutLayer(index)) return;
    m_sink.report(Severity::Note, kBypassedCode, {opPointer(index) + "/bypassed", op(index).id, {}},
                  fmt::format("{} ({}) is bypassed: {}.{} is {}.", op(index).id, op(index).operation, op(index).id,
                              port, m_builder.partial().value(*value).name));
  }

  bool isLeftOutLayer(std::size_t index) const {
    return m_section.isPipeline() && m_context.layers.isLeftOut(op(index));
  }

  Repair useAgain(std::size_t index) const { return {"Re-enable " + op(index).id, SetBypassed{op(index).id, {}}}; }

  bool hasExtraReaders(std::size_t index) const { return extraReaders().contains(index); }

  bool reportExtraReaders(std::size_t index) {
    const auto reader = extraReaders().find(index);
    if (reader == extraReaders().end()) return false;
    const std::string id = op(index).id;
    if (isLeftOutLayer(index)) {
      m_sink
          .error(kBypassRefusedCode, {opPointer(index), id, reader->second.port},
                 fmt::format("{}, so {} is left out, but {} consumes {}.{}.", m_context.layers.reason(), id,
                             reader->second.by, id, reader->second.port))
          .repairs = {m_context.layers.useAll()};
      return true;
    }
    m_sink
        .error(kBypassRefusedCode, {opPointer(index) + "/bypassed", id, reader->second.port},
               fmt::format("{0} is bypassed, but {1} still consumes {2}.{3}. A bypassed op provides only its main "
                           "output. Bypass the consumer as well, or re-enable {4}.",
                           id, reader->second.by, id, reader->second.port, id))
        .repairs = {useAgain(index)};
    return true;
  }

  const ExtraReaders& extraReaders() const {
    if (!m_extraReaders) m_extraReaders = findExtraReaders(m_section);
    return *m_extraReaders;
  }

  // The main input replaces the main output, so both need the same spec, if the output's is known.
  bool keepsTensor(std::size_t index, ValueId value) {
    const std::optional<TensorSpec> result = resultOf(index);
    const TensorSpec& spec = m_builder.partial().value(value).spec;
    if (!result || (result->dtype == spec.dtype && result->shape == spec.shape)) return true;
    const std::string id = op(index).id;
    m_sink
        .error(kBypassRefusedCode, {opPointer(index) + "/bypassed", id, type(index).inputs.front().name},
               fmt::format("{0} is bypassed, but turns {2} into {1}, so consumers of {3}.{4} would get another tensor; "
                           "expected the same shape and dtype. Re-enable {5}.",
                           id, toString(*result), toString(spec), id, type(index).outputs.front().name, id))
        .repairs = {useAgain(index)};
    return false;
  }

  // Output that the op would produce if it were not bypassed; nullopt if unknown, as for an instance of a block.
  std::optional<TensorSpec> resultOf(std::size_t index) const {
    const ResolvedAttributes& resolved = m_section.attributes(index);
    const auto values = sourceValues(index);
    if (!values || resolved.hasFailed || !resolved.missing.empty() || m_context.blocks.blockOf(op(index))) return {};
    const Result<std::vector<OpPart>> parts = m_parts.inferred(index);
    if (!parts) return std::nullopt;
    InferenceProblem ignored;
    const Result<std::vector<TensorSpec>> results = inferChain(*parts, specsOf(*values), ignored);
    return results ? std::optional(results->front()) : std::nullopt;
  }

  void lowerInstance(std::size_t index, const BlockTable::Block& block) {
    if (m_place.isDry || !block.isExpandable || !m_wiring.isNamed(index) || !countOps(index, block)) return;
    const Section& inner = m_context.sections.at(block.name);
    OptionalValues inputs;
    for (std::size_t port = 0; port < block.operation.inputs.size(); ++port)
      inputs.push_back(acceptedValue(index, inner, port));
    const Place place = {m_parts.pathOf(index), m_place.owner.empty() ? op(index).id : m_place.owner};
    m_opValues[index] = lowerInside(index, inner, place, std::move(inputs));
    for (std::size_t port = 0; port < m_opValues[index].size(); ++port)
      if (const auto value = m_opValues[index][port])
        m_builder.addAlias(place.path + "." + block.operation.outputs[port].name, *value);
  }

  OptionalValues lowerInside(std::size_t index, const Section& inner, const Place& place, OptionalValues inputs) {
    const Attributes& given = m_section.attributes(index).values;
    const bool isSequential = given.has(kSequentialAttribute) && given.boolean(kSequentialAttribute);
    if (isSequential && m_isFirstTime) warnOfExtraPorts(m_sink, m_section, index);
    const InsideBlock scope(m_sink, {inner.name(), place.path, place.owner});
    if (isSequential) m_builder.enterSequential(place.path, m_section.name());
    OptionalValues outputs = SectionLowering(m_context, inner, place, std::move(inputs)).run();
    if (isSequential) m_builder.leaveSequential();
    return outputs;
  }

  // Each block stays below the limit; here it is the sum over the instances of the pipeline.
  bool countOps(std::size_t index, const BlockTable::Block& block) {
    if (!m_section.isPipeline()) return true;
    const bool wasFull = m_context.numExpandedOps > BlockTable::kMaxOps;
    m_context.numExpandedOps += block.numOps + 1;
    if (m_context.numExpandedOps <= BlockTable::kMaxOps) return true;
    if (!wasFull)
      m_sink.error("too-many-ops", {opPointer(index), op(index).id, {}},
                   fmt::format("{}: with the {} ops of this instance of block {}, the pipeline has more than {} ops, "
                               "the maximum. Use fewer instances.",
                               op(index).id, block.numOps, block.name, BlockTable::kMaxOps));
    return false;
  }

  // Value at an input of an instance, if it is known and matches the declaration of the block's input.
  std::optional<ValueId> acceptedValue(std::size_t index, const Section& inner, std::size_t port) {
    const auto value = valueOf(m_wiring.sources(index)[port]);
    if (!value) return std::nullopt;
    const TensorSpec& spec = m_builder.partial().value(*value).spec;
    const Section::DeclaredInput& declared = inner.input(port);
    const TensorSpec wanted = {.dtype = declared.dtype.value_or(spec.dtype),
                               .shape = declared.shape.value_or(spec.shape)};
    if (wanted.dtype == spec.dtype && wanted.shape == spec.shape) return value;
    const std::string& name = type(index).inputs[port].name;
    m_sink.error(
        "shape-mismatch", {opPointer(index), op(index).id, name},
        fmt::format("{}: {} is {}, but block {} declares it as {}. Change the connected tensor or the declaration.",
                    op(index).id, name, toString(spec), inner.name(), toString(wanted)));
    return std::nullopt;
  }

  std::vector<TensorSpec> specsOf(const std::vector<ValueId>& values) const {
    std::vector<TensorSpec> specs;
    for (const ValueId value : values) specs.push_back(m_builder.partial().value(value).spec);
    return specs;
  }

  void addNodes(std::size_t index, const std::vector<OpPart>& parts, const std::vector<ValueId>& values) {
    const auto add = [&](const OpPart& part, std::vector<ValueId> inputs) -> Result<std::vector<ValueId>> {
      const std::string& owner = m_place.owner.empty() ? op(index).id : m_place.owner;
      const Result<NodeId> node = m_builder.addNode(part.id, owner, part.operation, part.attributes, std::move(inputs));
      if (!node) return node.error();
      if (!m_section.isPipeline()) m_builder.setOrigin(*node, m_parts.pathOf(index), m_section.name());
      return m_builder.partial().node(*node).outputs;
    };
    const auto outputs = runChain(parts, values, add);
    if (outputs)
      m_opValues[index].assign(outputs->begin(), outputs->end());
    else
      m_repairs.reportMismatch(index, specsOf(values), {.message = outputs.error().message});
  }

  // Allowed, but rarely meant: a residual in f32 turns a bf16 branch into f32.
  void warnOfMixedDTypes(std::size_t index, const std::vector<TensorSpec>& inputs) {
    const auto other = std::ranges::find_if(
        inputs, [&](const auto& spec) { return isFloat(spec.dtype) && spec.dtype != inputs[0].dtype; });
    if (other == inputs.end()) return;
    const auto slot = static_cast<std::size_t>(other - inputs.begin());
    const auto& ports = type(index).inputs;
    const TensorSpec& result = m_builder.partial().value(*m_opValues[index].front()).spec;
    m_sink.report(
        Severity::Warning, "mixed-dtypes", {opPointer(index), op(index).id, ports[slot].name},
        fmt::format("{}: {} is {}, but {} is {}; the result is {}.", op(index).id, ports[0].name,
                    dtypeName(inputs[0].dtype), ports[slot].name, dtypeName(other->dtype), dtypeName(result.dtype)));
  }

  std::vector<bool> knownInputs() const {
    std::vector<bool> isKnown;
    for (const std::optional<ValueId>& value : m_inputValues) isKnown.push_back(value.has_value());
    return isKnown;
  }

  OptionalValues outputValues() const {
    OptionalValues values;
    for (std::size_t i = 0; i < m_section.block().outputs.size(); ++i) {
      const Source& source = m_wiring.outputSource(i);
      values.push_back(source.kind == Source::Kind::Op ? valueOf(source) : std::nullopt);
    }
    return values;
  }

  LoweringContext& m_context;
  const Section& m_section;
  const Connectivity& m_wiring;
  const Place m_place;
  OpParts m_parts;
  AttributeRepairs m_repairs;
  const bool m_isFirstTime;
  DiagnosticSink& m_sink;
  GraphBuilder& m_builder;
  OptionalValues m_inputValues;
  std::vector<OptionalValues> m_opValues;
  mutable std::optional<ExtraReaders> m_extraReaders;  // looked for where an op is bypassed
};

OptionalValues addInputs(LoweringContext& context) {
  context.builder.reserve(context.document.ops().size());
  OptionalValues values;
  for (std::size_t i = 0; i < context.document.inputs().size(); ++i) {
    const DocumentInput& input = context.document.inputs()[i];
    const auto& [dtype, shape] = context.pipeline.input(i);
    values.emplace_back();
    if (!dtype || !shape) continue;
    const TensorSpec spec = {.dtype = *dtype, .shape = *shape};
    if (isCountable(spec))
      values.back() = context.builder.addInput(input.id, spec, input.requiresGradient.value_or(true));
    else
      context.sink.error(
          "integer-overflow", {fmt::format("/pipeline/inputs/{}/shape", i), input.id, {}},
          fmt::format("{}: a tensor {} has more bytes than 64 bits can count.", input.id, toString(spec)));
  }
  return values;
}

void addOutputs(LoweringContext& context, const OptionalValues& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const DocumentOutput& output = context.document.outputs()[i];
    const Value& value = context.builder.partial().value(*values[i]);
    if (value.producer >= 0)
      context.builder.addOutput(output.id, *values[i]);
    else if (isOfExternal(value.name))
      context.sink.error(
          "output-is-input", {fmt::format("/pipeline/outputs/{}/from", i), output.id, {}},
          fmt::format(
              "Output {} is {}, an output of {}, which is not executed. Put an op in between, or remove the output.",
              output.id, value.name, externalOf(value.name)));
    else
      context.sink.error("output-is-input", {fmt::format("/pipeline/outputs/{}/from", i), output.id, {}},
                         fmt::format("Output {} is pipeline input {} itself, because all ops in between are bypassed. "
                                     "Re-enable one of them, or remove the output.",
                                     output.id, value.name));
  }
}

// A block that no instance has reached is checked by itself, as far as that goes without tensors.
void checkUnreached(LoweringContext& context) {
  for (const BlockTable::Block& block : context.blocks.blocks()) {
    const Section& section = context.sections.at(block.name);
    if (context.lowered.contains(&section)) continue;
    const InsideBlock scope(context.sink, block.firstUse);
    SectionLowering(context, section, {.path = block.name, .owner = {}, .isDry = true},
                    OptionalValues(block.block->inputs.size()))
        .run();
  }
}

}  // namespace

LoweredGraph lower(const PipelineDocument& document, const LoweringOptions& options, const SourceMap* sourceMap) {
  LoweringContext context(document, options, sourceMap);
  OptionalValues inputs = addInputs(context);
  addOutputs(context, SectionLowering(context, context.pipeline, {}, std::move(inputs)).run());
  checkUnreached(context);
  return {std::move(context.builder).finish(options.pass).withOptimizer(options.optimizer),
          std::move(context.sink).finish()};
}

}  // namespace fuseline
