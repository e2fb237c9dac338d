// Lowers ops in topological order. A problem of one op is reported where it arises; ops behind it are skipped silently,
// so that only root causes are listed.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/lowering.h"

#include "core/document/attribute_resolver.h"
#include "core/document/connectivity.h"
#include "core/document/diagnostic_sink.h"
#include "core/document/json_text.h"
#include "core/document/symbol_table.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

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

class OperationTable {
 public:
  explicit OperationTable(const OperationCatalog& catalog) : m_catalog(catalog) {
    for (const auto& operation : catalog.operations()) m_byName.emplace(operation->name, operation.get());
  }
  const FusibleOperation* find(const std::string& name) const {
    const auto found = m_byName.find(name);
    return found == m_byName.end() ? nullptr : found->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& operation : m_catalog.operations()) names.push_back(operation->name);
    return names;
  }

 private:
  const OperationCatalog& m_catalog;
  std::unordered_map<std::string_view, const FusibleOperation*> m_byName;
};

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

// What an op's infer refuses begins with the op's name; here the sentence begins with the id.
std::string withoutName(const std::string& message, const std::string& name) {
  const std::string prefix = name + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

Result<std::vector<TensorSpec>> inferPart(const Part& part, const std::vector<TensorSpec>& inputs,
                                          InferenceProblem& problem) {
  Result<OperationSpecs> specs = part.operation->infer(part.attributes, inputs);
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

class Lowering {
 public:
  Lowering(const PipelineDocument& document, const LoweringOptions& options, const SourceMap* sourceMap)
      : m_document(document),
        m_options(options),
        m_isUnreadable(sourceMap && sourceMap->places.empty()),
        m_sink(sourceMap),
        m_operations(options.catalog ? *options.catalog : builtinOperations()),
        m_symbols(document, options, m_sink),
        m_attributes(m_symbols, m_sink),
        m_wiring(document, findOperations(), m_sink) {}

  LoweredGraph run() {
    lowerInputs();
    resolveAttributes();
    m_opValues.resize(m_document.ops().size());
    reportUnconnected();
    for (const std::size_t op : m_wiring.order()) lowerOp(op);
    lowerOutputs();
    reportUnused();
    return {std::move(m_builder).finish(m_options.pass), std::move(m_sink).finish()};
  }

 private:
  const DocumentOp& op(std::size_t index) const { return m_document.ops()[index]; }
  static std::string opPointer(std::size_t index) { return fmt::format("/pipeline/ops/{}", index); }

  std::vector<OperationPointer> findOperations() {
    m_resolved.resize(m_document.ops().size());
    for (std::size_t i = 0; i < m_document.ops().size(); ++i) {
      const FusibleOperation* found = m_operations.find(op(i).operation);
      if (!found && op(i).extra.is_object()) reportUnknownOp(i);
      m_types.push_back(found ? typeOf(i, *found) : nullptr);
    }
    return m_types;
  }

  // Ports may depend on attributes, so these are resolved before the wires are. Where that fails the ports are not
  // known, and only the cause is reported.
  OperationPointer typeOf(std::size_t index, const FusibleOperation& operation) {
    if (!operation.specialise) return unowned(operation);
    const std::size_t first = m_sink.numReported();
    ResolvedAttributes& resolved = m_resolved[index] = m_attributes.resolve(op(index), index, operation);
    OperationPointer type;
    if (!resolved.hasFailed) {
      Result<OperationPointer> own = specialised(operation, resolved.values);
      if (own)
        type = std::move(*own);
      else
        reportBadAttribute(index, operation, own.error());
    }
    m_early.push_back({index, first, m_sink.numReported()});
    return type;
  }

  void reportBadAttribute(std::size_t index, const FusibleOperation& operation, const Error& error) {
    const std::string pointer =
        error.subject.empty() ? opPointer(index) + "/attributes" : attributePointer(index, error.subject);
    m_sink.error("bad-attribute", {pointer, op(index).id, {}},
                 fmt::format("{}: {}", op(index).id, withoutName(error.message, operation.name)));
  }

  void reportUnknownOp(std::size_t index) {
    const DocumentOp& written = op(index);
    if (written.operation.empty()) {
      if (!written.extra.contains("op"))
        m_sink.error("missing-field", {opPointer(index), written.id, {}},
                     fmt::format("{} has no \"op\"; expected the name of an op such as \"Linear\".", written.id));
      return;
    }
    const std::string near = m_sink.suggest(written.operation, m_operations.names());
    Diagnostic& diagnostic = m_sink.error(
        "unknown-op", {opPointer(index) + "/op", written.id, {}},
        fmt::format("{}: there is no op {}{}{}", written.id, inlineText(Json(shortened(written.operation))),
                    didYouMean(near), " The op is kept, but cannot run."));
    if (near.empty()) return;
    DocumentOp changed = written;
    changed.operation = near;
    const auto at = static_cast<int>(index);
    diagnostic.repairs.push_back(
        {fmt::format("Change it to {}", near),
         EditGroup{fmt::format("Change {} to {}", written.id, near), {RemoveOp{written.id, at}, AddOp{changed, at}}}});
  }

  void lowerInputs() {
    for (std::size_t i = 0; i < m_document.inputs().size(); ++i) {
      const DocumentInput& input = m_document.inputs()[i];
      m_inputValues.emplace_back();
      if (!input.extra.is_object()) continue;
      const std::size_t numReported = m_sink.numReported();
      const auto dtype = readDType(input, i);
      const auto shape = readShape(input, i);
      if (!m_wiring.isInputNamed(i)) m_sink.withdrawRepairs(numReported);
      if (!dtype || !shape) continue;
      const TensorSpec spec = {.dtype = *dtype, .shape = *shape};
      if (isCountable(spec))
        m_inputValues.back() = m_builder.addInput(input.id, spec, input.requiresGradient.value_or(true));
      else
        m_sink.error("integer-overflow", {fmt::format("/pipeline/inputs/{}/shape", i), input.id, {}},
                     fmt::format("{}: a tensor {} has more bytes than 64 bits can count.", input.id, toString(spec)));
    }
  }

  std::optional<DType> readDType(const DocumentInput& input, std::size_t index) {
    if (const auto dtype = parseDType(input.dtype)) return dtype;
    if (input.dtype.empty() && input.extra.contains("dtype")) return std::nullopt;  // reported by the reader
    const std::string pointer = fmt::format("/pipeline/inputs/{}", index);
    const std::string found = input.dtype.empty()
                                  ? fmt::format("{} has no \"dtype\"", input.id)
                                  : fmt::format("{}: the dtype is \"{}\"", input.id, shortened(input.dtype));
    Diagnostic& diagnostic = m_sink.error(input.dtype.empty() ? "missing-field" : "unknown-dtype",
                                          {input.dtype.empty() ? pointer : pointer + "/dtype", input.id, {}},
                                          found + "; expected f32, f16 or bf16.");
    for (const char* name : {"bf16", "f32", "f16"}) {
      DocumentInput changed = input;
      changed.dtype = name;
      diagnostic.repairs.push_back({fmt::format("Set the dtype to {}", name), ReplaceInput{input.id, changed}});
    }
    return std::nullopt;
  }

  std::optional<Shape> readShape(const DocumentInput& input, std::size_t index) {
    const std::string pointer = fmt::format("/pipeline/inputs/{}", index);
    if (!input.shape.is_array()) {
      m_sink.error(input.shape.is_null() ? "missing-field" : "wrong-type",
                   {input.shape.is_null() ? pointer : pointer + "/shape", input.id, {}},
                   fmt::format("{}: the shape is {}; expected a list such as [\"M\", 1024].", input.id,
                               input.shape.is_null() ? "missing" : shortened(inlineText(input.shape))));
      return std::nullopt;
    }
    Shape shape;
    for (std::size_t i = 0; i < input.shape.size(); ++i) {
      const auto replace = [&](Json value) -> Edit {
        DocumentInput changed = input;
        changed.shape[i] = std::move(value);
        return ReplaceInput{input.id, changed};
      };
      const Spot spot = {fmt::format("{}/shape/{}", pointer, i), input.id, {}};
      const auto extent =
          m_symbols.integer(input.shape[i], fmt::format("{}: extent {} of the shape", input.id, i), spot, replace);
      if (extent && *extent >= 0) shape.push_back(*extent);
      if (extent && *extent < 0)
        m_sink.error("out-of-range", spot,
                     fmt::format("{}: extent {} of the shape is {}; expected 0 or more.", input.id, i, *extent));
    }
    return shape.size() == input.shape.size() ? std::optional(shape) : std::nullopt;
  }

  void resolveAttributes() {
    for (const EarlyReport& report : m_early)
      if (!m_wiring.isNamed(report.op)) m_sink.withdrawRepairs(report.first, report.last);
    auto early = m_early.begin();
    for (std::size_t i = 0; i < m_document.ops().size(); ++i) {
      if (early != m_early.end() && early->op == i) {
        ++early;
        continue;
      }
      const std::size_t numReported = m_sink.numReported();
      if (m_types[i]) m_resolved[i] = m_attributes.resolve(op(i), i, *m_types[i]);
      // Edits go by id, so they would change the op that bears it first.
      if (!m_wiring.isNamed(i)) m_sink.withdrawRepairs(numReported);
    }
  }

  void reportUnconnected() {
    for (std::size_t i = 0; i < m_document.ops().size(); ++i) {
      if (!m_types[i] || !m_wiring.isNamed(i)) continue;
      for (std::size_t port = 0; port < m_wiring.sources(i).size(); ++port) {
        if (m_wiring.sources(i)[port].kind != Source::Kind::None) continue;
        const std::string& name = m_types[i]->inputs[port].name;
        m_sink.error(
            "unconnected-input", {opPointer(i), op(i).id, name},
            fmt::format("{}.{} is not connected; connect the result of an op or a pipeline input.", op(i).id, name));
        m_isWired = false;
      }
    }
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
    if (!m_types[index]) return;
    const ResolvedAttributes& resolved = m_resolved[index];
    const auto values = m_wiring.isNamed(index) ? sourceValues(index) : std::nullopt;
    const auto inputs = values ? std::optional(specsOf(*values)) : std::nullopt;
    for (const AttributeSpec* spec : resolved.missing) reportMissing(index, *spec, inputs);
    if (!inputs || resolved.hasFailed || !resolved.missing.empty()) return;
    const Result<std::vector<Part>> parts = expand(index, resolved.values);
    if (!parts) return reportBadAttribute(index, *m_types[index], parts.error());
    InferenceProblem problem;
    if (!inferChain(*parts, *inputs, problem)) return reportMismatch(index, *inputs, problem);
    addNodes(index, *parts, *values);
    warnOfMixedDTypes(index, *inputs);
  }

  std::vector<TensorSpec> specsOf(const std::vector<ValueId>& values) const {
    std::vector<TensorSpec> specs;
    for (const ValueId value : values) specs.push_back(m_builder.partial().value(value).spec);
    return specs;
  }

  Result<std::vector<Part>> expand(std::size_t index, const Attributes& attributes) const {
    const std::string& id = op(index).id;
    if (!m_types[index]->isComposite()) return std::vector<Part>{{id, m_types[index], attributes}};
    std::vector<Part> parts;
    for (ExpandedOperation& part : m_types[index]->expand(attributes)) {
      Result<OperationPointer> own = specialised(*m_operations.find(part.operation), part.attributes);
      if (!own) return Error{own.error().message};  // its subject is no attribute of the document's op
      parts.push_back({id + "." + part.suffix, std::move(*own), std::move(part.attributes)});
    }
    if (parts.size() == 1) parts.front().id = id;
    return parts;
  }

  void addNodes(std::size_t index, const std::vector<Part>& parts, const std::vector<ValueId>& values) {
    const auto add = [&](const Part& part, std::vector<ValueId> inputs) -> Result<std::vector<ValueId>> {
      const Result<NodeId> node =
          m_builder.addNode(part.id, op(index).id, part.operation, part.attributes, std::move(inputs));
      if (!node) return node.error();
      return m_builder.partial().node(*node).outputs;
    };
    const auto outputs = runChain(parts, values, add);
    if (outputs)
      m_opValues[index] = *outputs;
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
    Attributes attributes = m_resolved[index].values;
    if (value.is_array())
      attributes.set(spec.name, value.get<std::vector<std::int64_t>>());
    else
      attributes.set(spec.name, value.get<std::int64_t>());
    InferenceProblem ignored;
    const Result<std::vector<Part>> parts = expand(index, attributes);
    return parts && inferChain(*parts, inputs, ignored).hasValue();
  }

  void reportMissing(std::size_t index, const AttributeSpec& spec,
                     const std::optional<std::vector<TensorSpec>>& inputs) {
    const DocumentOp& written = op(index);
    const std::string actual = inputs ? fmt::format(" It reads {}.", toString(inputs->front())) : "";
    Diagnostic& diagnostic = m_sink.error("missing-attribute", {opPointer(index) + "/attributes", written.id, {}},
                                          fmt::format("{}: {} needs the attribute {} ({}).{}", written.id,
                                                      written.operation, spec.name, typeName(spec.type), actual));
    const bool isOnlyGap = m_resolved[index].missing.size() == 1 && !m_resolved[index].hasFailed;
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
    for (const AttributeSpec& spec : m_types[index]->attributes) {
      for (const Json& value : candidates(spec, inputs)) {
        if (!wouldFit(index, spec, value, inputs)) continue;
        repairs.push_back(setAttribute(written.id, spec.name, value));
        if (written.attributes.contains(spec.name)) pointer = attributePointer(index, spec.name);
      }
    }
    const bool isOneInput = inputs.size() == 1;
    m_sink
        .error(problem.code, {std::move(pointer), written.id, isOneInput ? m_types[index]->inputs.front().name : ""},
               fmt::format("{}: {}", written.id, problem.message))
        .repairs = std::move(repairs);
  }

  // Allowed, but rarely meant: a residual in f32 turns a bf16 branch into f32.
  void warnOfMixedDTypes(std::size_t index, const std::vector<TensorSpec>& inputs) {
    const auto other = std::ranges::find_if(inputs, [&](const auto& spec) { return spec.dtype != inputs[0].dtype; });
    if (other == inputs.end()) return;
    const auto slot = static_cast<std::size_t>(other - inputs.begin());
    const auto& ports = m_types[index]->inputs;
    const TensorSpec& result = m_builder.partial().value(m_opValues[index].front()).spec;
    m_sink.report(
        Severity::Warning, "mixed-dtypes", {opPointer(index), op(index).id, ports[slot].name},
        fmt::format("{}: {} is {}, but {} is {}; the result is {}.", op(index).id, ports[0].name,
                    dtypeName(inputs[0].dtype), ports[slot].name, dtypeName(other->dtype), dtypeName(result.dtype)));
  }

  void lowerOutputs() {
    for (std::size_t i = 0; i < m_document.outputs().size(); ++i) {
      const Source& source = m_wiring.outputSource(i);
      const auto value = source.kind == Source::Kind::Op ? valueOf(source) : std::nullopt;
      if (value) m_builder.addOutput(m_document.outputs()[i].id, *value);
    }
    if (m_document.outputs().empty() && !isBlank()) reportNoOutputs();
  }

  // The empty document of a file that is no JSON at all: its syntax error says it all.
  bool isBlank() const { return m_isUnreadable && m_document.ops().empty() && m_document.inputs().empty(); }

  void reportNoOutputs() {
    Diagnostic& diagnostic =
        m_sink.error("no-outputs", {.pointer = "/pipeline"},
                     "The pipeline has no outputs; nothing it computes can be read. Add one that reads the last op.");
    for (std::size_t i = 0; i < m_document.ops().size(); ++i)
      if (isUnread(i)) return void(diagnostic.repairs.push_back(outputRepair(i)));
  }

  bool isUnread(std::size_t index) const {
    return m_types[index] && m_wiring.isNamed(index) && !m_wiring.isMainOutputUsed(index);
  }

  Repair outputRepair(std::size_t index) const {
    const Endpoint from = {op(index).id, m_types[index]->outputs.front().name};
    return {fmt::format("Add an output that reads {}", toString(from)),
            AddOutput{{.id = m_document.freeId("y"), .from = from}}};
  }

  // Behind a wrong or missing wire everything looks unused; only the cause is worth a line.
  void reportUnused() {
    if (!m_isWired || m_wiring.hasProblems()) return;
    for (std::size_t i = 0; i < m_document.inputs().size(); ++i) {
      const DocumentInput& input = m_document.inputs()[i];
      if (!m_inputValues[i] || m_wiring.isInputUsed(i)) continue;
      m_sink
          .report(Severity::Warning, "unused-input", {fmt::format("/pipeline/inputs/{}", i), input.id, {}},
                  fmt::format("Pipeline input {} is read by nothing.", input.id))
          .repairs.push_back({"Remove input " + input.id, RemoveInput{input.id, static_cast<int>(i)}});
    }
    if (!m_document.outputs().empty())
      for (std::size_t i = 0; i < m_document.ops().size(); ++i)
        if (isUnread(i)) reportUnusedResult(i);
  }

  void reportUnusedResult(std::size_t index) {
    const std::string& port = m_types[index]->outputs.front().name;
    Diagnostic& diagnostic =
        m_sink.report(Severity::Warning, "unused-result", {opPointer(index), op(index).id, port},
                      fmt::format("{}.{} is read by no op and no output; what {} computes is lost.", op(index).id, port,
                                  op(index).id));
    // Both repairs read the whole document.
    constexpr int kMostRepaired = 100;
    if (m_numUnused++ >= kMostRepaired) return;
    diagnostic.repairs = {outputRepair(index), {"Remove " + op(index).id, removeOpWithWires(m_document, op(index).id)}};
  }

  // What was reported of an op while its ports were looked for: the diagnostics [first, last).
  struct EarlyReport {
    std::size_t op = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  const PipelineDocument& m_document;
  const LoweringOptions& m_options;
  const bool m_isUnreadable;
  DiagnosticSink m_sink;
  OperationTable m_operations;
  SymbolTable m_symbols;
  AttributeResolver m_attributes;
  std::vector<OperationPointer> m_types;
  std::vector<ResolvedAttributes> m_resolved;
  std::vector<EarlyReport> m_early;
  Connectivity m_wiring;
  GraphBuilder m_builder;
  std::vector<std::optional<ValueId>> m_inputValues;
  std::vector<std::vector<ValueId>> m_opValues;
  bool m_isWired = true;  // no wire is wrong, no input unconnected
  int m_numUnused = 0;
};

}  // namespace

LoweredGraph lower(const PipelineDocument& document, const LoweringOptions& options, const SourceMap* sourceMap) {
  return Lowering(document, options, sourceMap).run();
}

}  // namespace fuseline
