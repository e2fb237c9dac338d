// Lowers ops in topological order. A problem of one op is reported at its origin; downstream ops are skipped silently,
// so that only root causes are listed. An instance of a block is lowered in its place, op by op.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/lowering.h"

#include "core/document/block_operation.h"
#include "core/document/json_text.h"
#include "core/lowering/attribute_resolver.h"
#include "core/lowering/block_table.h"
#include "core/lowering/connections.h"
#include "core/lowering/diagnostic_sink.h"
#include "core/lowering/section.h"
#include "core/ops/external.h"
#include "core/ops/offload.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline {

namespace {

// Can sizes and strides of this tensor be computed in 64 bits?
bool isCountable(const TensorSpec& spec) {
  std::int64_t size = sizeBytes(spec.dtype);
  return std::ranges::none_of(spec.shape, [&](std::int64_t extent) {
    return __builtin_mul_overflow(size, std::max<std::int64_t>(extent, 1), &size);
  });
}

// "1 input", "2 inputs".
std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// One basic op of a document's op.
struct Part {
  std::string id;
  OperationPointer operation;
  Attributes attributes;
};

// Feeds parts in chain order: main output to main input; extra inputs and outputs of the whole are taken and given in
// the order in which the parts have them. `run(part, inputs)` returns the outputs of one part.
template <class Tensor, class Run>
Result<std::vector<Tensor>> runChain(const std::vector<Part>& parts, std::vector<Tensor> inputs, const Run& run) {
  std::vector<Tensor> results;
  std::size_t numTaken = 1;
  Tensor main = inputs.front();
  for (const Part& part : parts) {
    std::vector<Tensor> partInputs = {main};
    for (std::size_t i = 1; i < part.operation->inputs.size() && numTaken < inputs.size(); ++i)
      partInputs.push_back(inputs[numTaken++]);
    Result<std::vector<Tensor>> outputs = run(part, std::move(partInputs));
    if (!outputs) return outputs.error();
    main = outputs->front();
    results.insert(results.end(), outputs->begin() + 1, outputs->end());
  }
  results.insert(results.begin(), main);
  return results;
}

struct InferenceProblem {
  std::string code = "shape-mismatch";
  std::string message;
};

Result<std::vector<TensorSpec>> inferPart(const Part& part, const std::vector<TensorSpec>& inputs,
                                          InferenceProblem& problem) {
  if (auto error = checkElements(*part.operation, inputs)) {
    problem = {"dtype-mismatch", withoutName(error->message, part.operation->name)};
    return *error;
  }
  Result<OperationSpecs> specs = inferSpecs(*part.operation, part.attributes, inputs);
  if (!specs) {
    problem.message = withoutName(specs.error().message, part.operation->name);
    return specs.error();
  }
  for (const auto* list : {&specs->outputs, &specs->parameters, &specs->residuals})
    for (const TensorSpec& spec : *list) {
      if (isCountable(spec)) continue;
      problem = {"integer-overflow",
                 fmt::format("a tensor {} would have more bytes than 64 bits can count.", toString(spec))};
      return Error{problem.message};
    }
  return std::move(specs->outputs);
}

Result<std::vector<TensorSpec>> inferChain(const std::vector<Part>& parts, std::vector<TensorSpec> inputs,
                                           InferenceProblem& problem) {
  return runChain(parts, std::move(inputs), [&](const Part& part, const std::vector<TensorSpec>& partInputs) {
    return inferPart(part, partInputs, problem);
  });
}

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
        pipeline(document.pipeline(), "", {sink, symbols, attributes, operations, blocks}) {
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

class SectionLowering {
 public:
  /// `inputs`: the values of the section's inputs, as far as they are known.
  SectionLowering(LoweringContext& context, const Section& section, Place place, OptionalValues inputs)
      : m_context(context),
        m_section(section),
        m_wiring(section.wiring()),
        m_place(std::move(place)),
        m_isFirstTime(context.lowered.insert(&section).second),
        m_sink(context.sink),
        m_builder(context.builder),
        m_inputValues(std::move(inputs)) {}

  /// The values of the section's outputs, as far as they are known.
  OptionalValues run() {
    m_opValues.resize(m_section.block().ops.size());
    for (const std::size_t op : m_wiring.order()) lowerOp(op);
    if (m_isFirstTime) reportOddities();
    return outputValues();
  }

 private:
  const DocumentOp& op(std::size_t index) const { return m_section.op(index); }
  const FusibleOperation& type(std::size_t index) const { return *m_section.type(index); }
  std::string pathOf(std::size_t index) const {
    return m_place.path.empty() ? op(index).id : m_place.path + "." + op(index).id;
  }

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
      for (const AttributeSpec* spec : resolved.missing) reportMissing(index, *spec, inputs);
    if (!inputs || resolved.hasFailed || !resolved.missing.empty()) return;
    if (isExternal(type(index))) return cutAt(index, *values);
    const Result<std::vector<Part>> parts = expand(index, resolved.values);
    if (!parts) return reportBadAttribute(m_sink, op(index), index, type(index), parts.error());
    InferenceProblem problem;
    if (!inferChain(*parts, *inputs, problem)) return reportMismatch(index, *inputs, problem);
    addNodes(index, *parts, *values);
    warnOfMixedDTypes(index, *inputs);
  }

  // Its inputs become outputs of the pipeline, and its outputs inputs, under the names of op tensors.
  void cutAt(std::size_t index, const std::vector<ValueId>& values) {
    InferenceProblem problem;
    const Part whole = asWhole(index);
    const Result<std::vector<TensorSpec>> made = inferPart(whole, specsOf(values), problem);
    if (!made) return reportMismatch(index, specsOf(values), problem);
    for (std::size_t port = 0; port < values.size(); ++port)
      handOut(whole.id + "." + type(index).inputs[port].name, values[port]);
    for (std::size_t port = 0; port < made->size(); ++port)
      m_opValues[index].emplace_back(
          m_builder.addInput(whole.id + "." + type(index).outputs[port].name, (*made)[port]));
    if (!m_isFirstTime) return;
    m_sink.report(Severity::Note, kExternalCode, {opPointer(index), op(index).id, {}},
                  fmt::format("{} ({}) is not executed. Its inputs become outputs of the pipeline; its outputs become "
                              "inputs filled with random values from the seed. It is not included in any timing.",
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
    m_builder.addAlias(pathOf(index) + "." + port, *value);
    if (!m_isFirstTime) return;
    m_sink.report(Severity::Note, kBypassedCode, {opPointer(index) + "/bypassed", op(index).id, {}},
                  fmt::format("{} ({}) is bypassed: {}.{} is {}.", op(index).id, op(index).operation, op(index).id,
                              port, m_builder.partial().value(*value).name));
  }

  Repair useAgain(std::size_t index) const { return {"Re-enable " + op(index).id, SetBypassed{op(index).id, {}}}; }

  bool hasExtraReaders(std::size_t index) const { return extraReaders().contains(index); }

  bool reportExtraReaders(std::size_t index) {
    const auto reader = extraReaders().find(index);
    if (reader == extraReaders().end()) return false;
    const std::string id = op(index).id;
    m_sink
        .error(kBypassRefusedCode, {opPointer(index) + "/bypassed", id, reader->second.port},
               fmt::format("{0} is bypassed, but {1} still consumes {2}.{3}. A bypassed op provides only its main "
                           "output. Bypass the consumer as well, or re-enable {4}.",
                           id, reader->second.by, id, reader->second.port, id))
        .repairs = {useAgain(index)};
    return true;
  }

  // A consumer of an extra output of a bypassed op.
  struct ExtraReader {
    std::string port;
    std::string by;  // "add.extra", "output y"
  };
  using ExtraReaders = std::unordered_map<std::size_t, ExtraReader>;

  const ExtraReaders& extraReaders() const {
    if (!m_extraReaders) m_extraReaders = findExtraReaders();
    return *m_extraReaders;
  }

  ExtraReaders findExtraReaders() const {
    ExtraReaders readers;
    const auto note = [&](const Source& source, std::string by) {
      if (source.kind != Source::Kind::Op || source.port <= 0 || !op(source.index).isBypassed()) return;
      const Port& port = type(source.index).outputs[static_cast<std::size_t>(source.port)];
      readers.emplace(source.index, ExtraReader{port.name, std::move(by)});
    };
    for (std::size_t i = 0; i < m_opValues.size(); ++i) {
      const std::vector<Source>& sources = m_wiring.sources(i);
      const std::size_t numRead = op(i).isBypassed() ? std::min<std::size_t>(1, sources.size()) : sources.size();
      for (std::size_t port = 0; port < numRead; ++port)
        note(sources[port], op(i).id + "." + type(i).inputs[port].name);
    }
    for (std::size_t i = 0; i < m_section.block().outputs.size(); ++i)
      note(m_wiring.outputSource(i), "output " + m_section.block().outputs[i].id);
    return readers;
  }

  // The main input replaces the main output, so both need the same spec, if the output's is known.
  bool keepsTensor(std::size_t index, ValueId value) {
    const std::optional<TensorSpec> result = resultOf(index);
    const TensorSpec& spec = m_builder.partial().value(value).spec;
    if (!result || (result->dtype == spec.dtype && result->shape == spec.shape)) return true;
    const std::string id = op(index).id;
    m_sink
        .error(kBypassRefusedCode, {opPointer(index) + "/bypassed", id, type(index).inputs.front().name},
               fmt::format("{0} is bypassed, but turns {2} into {1}, so consumers of {3}.{4} would get another tensor. "
                           "Only ops that keep shape and dtype can be bypassed. Re-enable {5}.",
                           id, toString(*result), toString(spec), id, type(index).outputs.front().name, id))
        .repairs = {useAgain(index)};
    return false;
  }

  // Output that the op would produce if it were not bypassed; nullopt if unknown, as for an instance of a block.
  std::optional<TensorSpec> resultOf(std::size_t index) const {
    const ResolvedAttributes& resolved = m_section.attributes(index);
    const auto values = sourceValues(index);
    if (!values || resolved.hasFailed || !resolved.missing.empty() || m_context.blocks.blockOf(op(index))) return {};
    const Result<std::vector<Part>> parts = inferredParts(index);
    if (!parts) return std::nullopt;
    InferenceProblem ignored;
    const Result<std::vector<TensorSpec>> results = inferChain(*parts, specsOf(*values), ignored);
    return results ? std::optional(results->front()) : std::nullopt;
  }

  // An op that is not executed has no parts, but shapes as a whole.
  Part asWhole(std::size_t index) const {
    return {pathOf(index), m_section.type(index), m_section.attributes(index).values};
  }

  Result<std::vector<Part>> inferredParts(std::size_t index) const {
    if (isExternal(type(index))) return std::vector<Part>{asWhole(index)};
    return expand(index, m_section.attributes(index).values);
  }

  void lowerInstance(std::size_t index, const BlockTable::Block& block) {
    if (m_place.isDry || !block.isExpandable || !m_wiring.isNamed(index) || !countOps(index, block)) return;
    const Section& inner = m_context.sections.at(block.name);
    OptionalValues inputs;
    for (std::size_t port = 0; port < block.operation.inputs.size(); ++port)
      inputs.push_back(acceptedValue(index, inner, port));
    const Place place = {pathOf(index), m_place.owner.empty() ? op(index).id : m_place.owner};
    m_opValues[index] = lowerInside(index, inner, place, std::move(inputs));
    for (std::size_t port = 0; port < m_opValues[index].size(); ++port)
      if (const auto value = m_opValues[index][port])
        m_builder.addAlias(place.path + "." + block.operation.outputs[port].name, *value);
  }

  OptionalValues lowerInside(std::size_t index, const Section& inner, const Place& place, OptionalValues inputs) {
    const Attributes& given = m_section.attributes(index).values;
    const bool isSequential = given.has(kSequentialAttribute) && given.boolean(kSequentialAttribute);
    if (isSequential) warnOfExtraPorts(index);
    const InsideBlock scope(m_sink, {inner.name(), place.path, place.owner});
    if (isSequential) m_builder.enterSequential(place.path, m_section.name());
    OptionalValues outputs = SectionLowering(m_context, inner, place, std::move(inputs)).run();
    if (isSequential) m_builder.leaveSequential();
    return outputs;
  }

  // In TransformerEngine a nested Sequential is called with one tensor and gives one; extra tensors end at its border.
  void warnOfExtraPorts(std::size_t index) {
    const FusibleOperation& block = type(index);
    if (!m_isFirstTime || (block.inputs.size() == 1 && block.outputs.size() == 1)) return;
    const DocumentOp& written = op(index);
    m_sink
        .report(Severity::Warning, "sequential-ports", {attributePointer(index, kSequentialAttribute), written.id, {}},
                fmt::format("{}: {} is on, but block {} has {} and {}. TransformerEngine's nested Sequential has one "
                            "input and one output, so this runs only in Fuseline.",
                            written.id, kSequentialAttribute, blockNameOf(written),
                            counted(block.inputs.size(), "input"), counted(block.outputs.size(), "output")))
        .repairs = {
        {fmt::format("Switch {} off", kSequentialAttribute), SetAttribute{written.id, kSequentialAttribute, nullptr}}};
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

  Result<std::vector<Part>> expand(std::size_t index, const Attributes& attributes) const {
    const std::string id = pathOf(index);
    if (!type(index).isComposite()) return std::vector<Part>{{id, m_section.type(index), attributes}};
    std::vector<Part> parts;
    for (ExpandedOperation& part : type(index).expand(attributes)) {
      const FusibleOperation& basic = *m_context.operations.find(part.operation);
      passOnOffload(attributes, basic, part.attributes);
      Result<OperationPointer> own = specialised(basic, part.attributes);
      if (!own) return Error{own.error().message};  // its subject is no attribute of the document's op
      parts.push_back({id + "." + part.suffix, std::move(*own), std::move(part.attributes)});
    }
    if (parts.size() == 1) parts.front().id = id;
    return parts;
  }

  /// The parts for other attributes than the written ones, on which the op's form may depend.
  Result<std::vector<Part>> expandWith(std::size_t index, const Attributes& attributes) const {
    Result<std::vector<Part>> parts = expand(index, attributes);
    const FusibleOperation* written = m_context.operations.find(op(index).operation);
    if (!parts || parts->empty() || !written || !written->specialise) return parts;
    Result<OperationPointer> form = specialised(*written, attributes);
    if (!form) return form.error();
    parts->front().operation = std::move(*form);
    return parts;
  }

  void addNodes(std::size_t index, const std::vector<Part>& parts, const std::vector<ValueId>& values) {
    const auto add = [&](const Part& part, std::vector<ValueId> inputs) -> Result<std::vector<ValueId>> {
      const std::string& owner = m_place.owner.empty() ? op(index).id : m_place.owner;
      const Result<NodeId> node = m_builder.addNode(part.id, owner, part.operation, part.attributes, std::move(inputs));
      if (!node) return node.error();
      if (!m_section.isPipeline()) m_builder.setOrigin(*node, pathOf(index), m_section.name());
      return m_builder.partial().node(*node).outputs;
    };
    const auto outputs = runChain(parts, values, add);
    if (outputs)
      m_opValues[index].assign(outputs->begin(), outputs->end());
    else
      reportMismatch(index, specsOf(values), {.message = outputs.error().message});
  }

  // Values an integer attribute could take from the op's inputs: their widths.
  static std::vector<Json> candidates(const AttributeSpec& spec, const std::vector<TensorSpec>& inputs) {
    std::vector<Json> found;
    for (const TensorSpec& input : inputs) {
      Json value = input.cols();
      if (spec.type == AttributeType::IntegerList) value = Json::array({value});
      const auto width = static_cast<double>(input.cols());
      const bool isFit = (spec.type == AttributeType::Integer || spec.type == AttributeType::IntegerList) &&
                         width >= spec.minimum.value_or(width) && width <= spec.maximum.value_or(width);
      if (isFit && std::ranges::find(found, value) == found.end()) found.push_back(value);
    }
    return found;
  }

  bool wouldFit(std::size_t index, const AttributeSpec& spec, const Json& value,
                const std::vector<TensorSpec>& inputs) const {
    Attributes attributes = m_section.attributes(index).values;
    if (value.is_array())
      attributes.set(spec.name, value.get<std::vector<std::int64_t>>());
    else
      attributes.set(spec.name, value.get<std::int64_t>());
    InferenceProblem ignored;
    const Result<std::vector<Part>> parts = expandWith(index, attributes);
    return parts && inferChain(*parts, inputs, ignored).hasValue();
  }

  void reportMissing(std::size_t index, const AttributeSpec& spec,
                     const std::optional<std::vector<TensorSpec>>& inputs) {
    const DocumentOp& written = op(index);
    const std::string actual = inputs ? fmt::format(" It reads {}.", toString(inputs->front())) : "";
    Diagnostic& diagnostic = m_sink.error("missing-attribute", {opPointer(index) + "/attributes", written.id, {}},
                                          fmt::format("{}: {} needs the attribute {} ({}).{}", written.id,
                                                      written.operation, spec.name, typeName(spec.type), actual));
    const bool isOnlyGap = m_section.attributes(index).missing.size() == 1 && !m_section.attributes(index).hasFailed;
    if (!inputs || !isOnlyGap) return;
    for (const Json& value : candidates(spec, *inputs))
      if (wouldFit(index, spec, value, *inputs))
        diagnostic.repairs.push_back(setAttribute(written.id, spec.name, value));
  }

  // The op's own inference refuses. Trying the widths of the inputs in its attributes finds repairs for any op.
  void reportMismatch(std::size_t index, const std::vector<TensorSpec>& inputs, const InferenceProblem& problem) {
    const DocumentOp& written = op(index);
    std::vector<Repair> repairs;
    std::string pointer = opPointer(index);
    for (const AttributeSpec& spec : type(index).attributes) {
      for (const Json& value : candidates(spec, inputs)) {
        if (!wouldFit(index, spec, value, inputs)) continue;
        repairs.push_back(setAttribute(written.id, spec.name, value));
        if (written.attributes.contains(spec.name)) pointer = attributePointer(index, spec.name);
      }
    }
    const bool isOneInput = inputs.size() == 1;
    m_sink
        .error(problem.code, {std::move(pointer), written.id, isOneInput ? type(index).inputs.front().name : ""},
               fmt::format("{}: {}", written.id, problem.message))
        .repairs = std::move(repairs);
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

  OptionalValues outputValues() const {
    OptionalValues values;
    for (std::size_t i = 0; i < m_section.block().outputs.size(); ++i) {
      const Source& source = m_wiring.outputSource(i);
      values.push_back(source.kind == Source::Kind::Op ? valueOf(source) : std::nullopt);
    }
    return values;
  }

  void reportOddities() {
    if (!m_section.isPipeline() && m_section.block().inputs.empty())
      m_sink.error("no-inputs", {.pointer = "/pipeline"},
                   "The block has no inputs, so its instances cannot be connected. Add an input.");
    if (m_section.block().outputs.empty() && !isBlank()) reportNoOutputs();
    reportUnused();
  }

  // The empty document of a file that is no JSON at all: its syntax error says it all.
  bool isBlank() const {
    return m_context.isUnreadable && m_section.block().ops.empty() && m_section.block().inputs.empty();
  }

  void reportNoOutputs() {
    Diagnostic& diagnostic = m_sink.error("no-outputs", {.pointer = "/pipeline"},
                                          fmt::format("The {} has no output yet. Connect the last op to an output.",
                                                      m_section.isPipeline() ? "pipeline" : "block"));
    for (std::size_t i = 0; i < m_section.block().ops.size(); ++i)
      if (isUnread(i)) return void(diagnostic.repairs.push_back(outputRepair(i)));
  }

  bool isUnread(std::size_t index) const {
    return m_section.type(index) && m_wiring.isNamed(index) && !m_wiring.isMainOutputUsed(index);
  }

  Repair outputRepair(std::size_t index) const {
    const Endpoint from = {op(index).id, type(index).outputs.front().name};
    return {fmt::format("Connect {} to an output", toString(from)),
            AddOutput{{.id = freeId(m_section.block(), "y"), .from = from}}};
  }

  // Behind a wrong or missing wire everything looks unused; only the cause is worth a line.
  void reportUnused() {
    if (!m_section.isWired()) return;
    for (std::size_t i = 0; i < m_section.block().inputs.size(); ++i) {
      const DocumentInput& input = m_section.block().inputs[i];
      const bool isKnown = !m_section.isPipeline() || m_inputValues[i];
      if (!isKnown || m_wiring.isInputUsed(i)) continue;
      Diagnostic& diagnostic = m_sink.report(
          Severity::Warning, "unused-input", {fmt::format("/pipeline/inputs/{}", i), input.id, {}},
          fmt::format("{} input {} is not used.", m_section.isPipeline() ? "Pipeline" : "Block", input.id));
      // The inputs of a block are ports that its instances are wired by.
      if (m_section.isPipeline())
        diagnostic.repairs.push_back({"Remove input " + input.id, RemoveInput{input.id, static_cast<int>(i)}});
    }
    if (!m_section.block().outputs.empty())
      for (std::size_t i = 0; i < m_section.block().ops.size(); ++i)
        if (isUnread(i)) reportUnusedResult(i);
  }

  void reportUnusedResult(std::size_t index) {
    const std::string& port = type(index).outputs.front().name;
    Diagnostic& diagnostic = m_sink.report(
        Severity::Warning, "unused-result", {opPointer(index), op(index).id, port},
        fmt::format("{}.{} is not connected, so the result of {} is lost. Connect it to an op or an output.",
                    op(index).id, port, op(index).id));
    // Both repairs read the whole document.
    constexpr int kMostRepaired = 100;
    if (m_numUnused++ >= kMostRepaired) return;
    diagnostic.repairs = {outputRepair(index)};
    if (m_section.isPipeline())
      diagnostic.repairs.push_back({"Remove " + op(index).id, removeOpWithWires(m_context.document, op(index).id)});
  }

  LoweringContext& m_context;
  const Section& m_section;
  const Connectivity& m_wiring;
  const Place m_place;
  const bool m_isFirstTime;
  DiagnosticSink& m_sink;
  GraphBuilder& m_builder;
  OptionalValues m_inputValues;
  std::vector<OptionalValues> m_opValues;
  mutable std::optional<ExtraReaders> m_extraReaders;  // looked for where an op is bypassed
  int m_numUnused = 0;
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
  return {std::move(context.builder).finish(options.pass), std::move(context.sink).finish()};
}

}  // namespace fuseline
