// Writes the pipeline file: fixed key order, unknown fields after the known ones of their object, one op per line.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/block_operation.h"
#include "core/document/embedded_pipeline.h"
#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/document/json_text.h"
#include "core/document/picture.h"
#include "core/support/atomic_file.h"
#include "core/support/foreign_file.h"
#include "core/support/read_file.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline {

namespace {

// An object under construction. A known field that has no usable value is written as the extra bag holds it.
class Fields {
 public:
  explicit Fields(const Json& extra) : m_extra(extra) {}

  void add(const char* name, Json value) { m_members.push_back({name, std::move(value)}); }
  void addIf(bool hasValue, const char* name, Json value) {
    if (hasValue)
      add(name, std::move(value));
    else if (const auto kept = m_extra.find(name); kept != m_extra.end())
      add(name, *kept);
  }

  Json finish() && {
    std::unordered_set<std::string_view> known;
    for (const auto& [name, value] : m_members) known.insert(name);
    Json::object_t rest;
    for (const auto& [name, value] : m_extra.items())
      if (!known.contains(name)) rest.push_back({name, value});
    for (auto& [name, value] : rest) m_members.push_back({name, std::move(value)});
    return Json(std::move(m_members));
  }

 private:
  const Json& m_extra;
  Json::object_t m_members;
};

Json toJson(const DocumentInput& input) {
  const bool isRaw = !input.extra.is_object() && input.id.empty() && input.dtype.empty() && input.shape.is_null();
  if (isRaw) return input.extra;
  Fields fields(input.extra);
  fields.addIf(!input.id.empty(), "id", input.id);
  fields.addIf(!input.dtype.empty(), "dtype", input.dtype);
  fields.addIf(!input.shape.is_null(), "shape", input.shape);
  fields.addIf(input.requiresGradient.has_value(), "requires_grad", input.requiresGradient.value_or(true));
  return std::move(fields).finish();
}

Json toJson(const DocumentOp& op) {
  const bool isRaw =
      !op.extra.is_object() && op.id.empty() && op.operation.empty() && op.attributes.empty() && !op.bypassed;
  if (isRaw) return op.extra;
  Fields fields(op.extra);
  fields.addIf(!op.id.empty(), "id", op.id);
  fields.addIf(!op.operation.empty(), "op", op.operation);
  fields.addIf(op.bypassed.has_value(), "bypassed", op.isBypassed());
  fields.addIf(!op.attributes.empty() || !op.extra.contains("attributes"), "attributes", op.attributes);
  return std::move(fields).finish();
}

Json toJson(const DocumentOutput& output) {
  const std::string from = toString(output.from);
  if (!output.extra.is_object() && output.id.empty() && from.empty()) return output.extra;
  Fields fields(output.extra);
  fields.addIf(!output.id.empty(), "id", output.id);
  fields.addIf(!from.empty(), "from", from);
  return std::move(fields).finish();
}

Json toJson(const DocumentFrame& frame) {
  if (!frame.extra.is_object() && frame == DocumentFrame{.extra = frame.extra}) return frame.extra;
  const FrameArea area = frame.area.value_or(FrameArea());
  Fields fields(frame.extra);
  fields.addIf(!frame.id.empty(), "id", frame.id);
  fields.addIf(!frame.title.empty(), "title", frame.title);
  fields.addIf(frame.text.has_value(), "text", frame.text.value_or(""));
  fields.addIf(frame.area.has_value(), "area", Json::array({area.x, area.y, area.width, area.height}));
  fields.addIf(!frame.color.empty(), "color", frame.color);
  fields.addIf(frame.locked.has_value(), "locked", frame.isLocked());
  return std::move(fields).finish();
}

Json toJson(const Wire& wire) { return Json::array({toString(wire.from), toString(wire.to)}); }

template <class Item>
Json toJson(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(toJson(item));
  return list;
}

// "key": value, always over several lines unless empty.
void writeBroken(std::string& out, const Json& value, std::size_t indent) {
  if (value.empty()) return writePretty(out, value, indent, 0);
  const std::string inner(indent + 2, ' ');
  out += '[';
  for (std::size_t i = 0; i < value.size(); ++i) {
    out += (i == 0 ? "\n" : ",\n") + inner;
    writePretty(out, value[i], indent + 2, indent + 3);
  }
  out += "\n" + std::string(indent, ' ') + ']';
}

}  // namespace

class DocumentWriter {
 public:
  explicit DocumentWriter(const PipelineDocument& document) : m_document(document) {}

  Json object() const {
    const PipelineDocument& document = m_document;
    const bool hasBlocks = !document.blocks().empty() || !bag("blocks").empty();
    Fields fields(bag(""));
    fields.addIf(!bag("").contains("$schema"), "$schema", kSchemaName);
    fields.add("format", kFormatName);
    fields.addIf(!bag("").contains("formatVersion"), "formatVersion", versionObject());
    fields.addIf(!document.symbols().empty() || !bag("symbols").empty(), "symbols", symbolsObject());
    fields.addIf(hasBlocks, "blocks", blocksObject());
    fields.addIf(hasPipeline(), "pipeline", listsObject(document.pipeline()));
    fields.addIf(!document.recipe().is_null(), "recipe", document.recipe());
    fields.addIf(!document.fusion().is_null(), "fusion", document.fusion());
    const Json view = viewObject(document.pipeline());
    fields.addIf(!view.empty(), "view", view);
    return std::move(fields).finish();
  }

  std::string write() {
    const Json file = object();
    m_out = "{";
    for (const auto& [name, value] : file.items()) {
      startField(name, 2);
      if (name == "pipeline" && value.is_object())
        writeBlock(value, 2);
      else if (name == "blocks" && value.is_object())
        writeBlocks(value);
      else
        writePretty(m_out, value, 2, 2 + name.size() + 5);
    }
    return m_out + "\n}\n";
  }

 private:
  Json versionObject() const {
    const Json& extra = bag("formatVersion");
    Fields fields(extra);
    fields.addIf(!extra.contains("major"), "major", kFormatMajor);
    fields.addIf(!extra.contains("minor"), "minor", std::max(leastMinor(), m_document.m_formatMinor));
    return std::move(fields).finish();
  }

  /// The version that knows all that the document uses.
  int leastMinor() const {
    const auto hasFrames = [](const DocumentBlock& block) { return !block.frames.empty(); };
    const auto hasBypassed = [](const DocumentBlock& block) {
      return std::ranges::any_of(block.ops, &DocumentOp::isBypassed);
    };
    const auto hasLayers = [](const DocumentBlock& block) {
      return std::ranges::any_of(block.ops, [](const DocumentOp& op) {
        return !blockNameOf(op).empty() && op.attributes.contains(kLayerAttribute);
      });
    };
    if (isAnyBlock(hasLayers)) return kFormatMinorOfLayers;
    if (bag("").contains("onnx")) return kFormatMinorOfOnnx;
    if (bag("").contains("weights")) return kFormatMinorOfWeights;
    if (isAnyBlock(hasFrames)) return kFormatMinorOfFrames;
    if (isAnyBlock(hasBypassed)) return kFormatMinorOfBypass;
    return m_document.blocks().empty() ? 0 : kFormatMinorOfBlocks;
  }

  /// The pipeline is one of them.
  template <class Is>
  bool isAnyBlock(const Is& is) const {
    return is(m_document.pipeline()) ||
           std::ranges::any_of(m_document.blocks(), [&](const auto& entry) { return is(entry.second); });
  }

  Json symbolsObject() const {
    Json::object_t members = m_document.symbols().get_ref<const Json::object_t&>();
    for (const auto& [name, value] : bag("symbols").items())
      if (!m_document.symbols().contains(name)) members.push_back({name, value});
    return Json(std::move(members));
  }

  Json blocksObject() const {
    Json::object_t members;
    for (const auto& [name, block] : m_document.blocks()) members.push_back({name, blockObject(block)});
    for (const auto& [name, value] : bag("blocks").items())
      if (!m_document.findBlock(name)) members.push_back({name, value});
    return Json(std::move(members));
  }

  bool hasPipeline() const {
    const PipelineDocument& document = m_document;
    return !document.ops().empty() || !document.inputs().empty() || !document.outputs().empty() ||
           !document.wires().empty() || !bag("").contains("pipeline");
  }

  // The lists of the pipeline or of a block, and the unknown fields beside them.
  static Json listsObject(const DocumentBlock& block) {
    const Json& extra = bagOf(block, "");
    Fields fields(extra);
    addLists(fields, extra, block);
    return std::move(fields).finish();
  }

  static Json blockObject(const DocumentBlock& block) {
    const Json& extra = bagOf(block, "");
    Fields fields(extra);
    addLists(fields, extra, block);
    const Json view = viewObject(block);
    fields.addIf(!view.empty(), "view", view);
    return std::move(fields).finish();
  }

  static void addLists(Fields& fields, const Json& extra, const DocumentBlock& block) {
    const auto add = [&](const char* name, const Json& list) {
      fields.addIf(!list.empty() || !extra.contains(name), name, list);
    };
    add("inputs", toJson(block.inputs));
    add("ops", toJson(block.ops));
    add("wires", toJson(block.wires));
    add("outputs", toJson(block.outputs));
  }

  static Json viewObject(const DocumentBlock& block) {
    Json::object_t positions;
    std::unordered_set<std::string_view> placed;
    for (const auto& [id, position] : block.positions) {
      placed.insert(id);
      positions.push_back({id, Json::array({position.x, position.y})});
    }
    for (const auto& [id, value] : bagOf(block, "positions").items())
      if (!placed.contains(id)) positions.push_back({id, value});
    Fields fields(bagOf(block, "view"));
    const bool hasPositions = !positions.empty();
    fields.addIf(hasPositions, "positions", Json(std::move(positions)));
    fields.addIf(!block.frames.empty(), "frames", toJson(block.frames));
    return std::move(fields).finish();
  }

  void writeBlocks(const Json& blocks) {
    if (blocks.empty()) {
      m_out += "{}";
      return;
    }
    m_out += '{';
    for (const auto& [name, value] : blocks.items()) {
      startField(name, 4);
      if (value.is_object())
        writeBlock(value, 4);
      else
        writePretty(m_out, value, 4, 4 + name.size() + 5);
    }
    m_out += "\n  }";
  }

  // `indent` is that of the line on which the block begins.
  void writeBlock(const Json& block, std::size_t indent) {
    m_out += '{';
    for (const auto& [name, value] : block.items()) {
      startField(name, indent + 2);
      if (name == "ops" && value.is_array())
        writeBroken(m_out, value, indent + 2);
      else
        writePretty(m_out, value, indent + 2, indent + 2 + name.size() + 5);
    }
    m_out += "\n" + std::string(indent, ' ') + '}';
  }

  void startField(const std::string& name, std::size_t indent) {
    if (m_out.back() != '{') m_out += ',';
    m_out += "\n" + std::string(indent, ' ') + Json(name).dump() + ": ";
  }

  static const Json& find(const std::map<std::string, Json>& bags, const std::string& name) {
    static const Json empty = Json::object();
    const auto found = bags.find(name);
    return found == bags.end() ? empty : found->second;
  }
  const Json& bag(const std::string& name) const { return find(m_document.m_extra, name); }
  static const Json& bagOf(const DocumentBlock& block, const char* name) { return find(block.extra, name); }

  const PipelineDocument& m_document;
  std::string m_out;
};

Json toJson(const PipelineDocument& document) { return DocumentWriter(document).object(); }

std::string serialize(const PipelineDocument& document) { return DocumentWriter(document).write(); }

std::string fileTooLarge(std::size_t bytes) {
  return fmt::format("The file has {} bytes, but a pipeline file may have at most {} (64 MiB).", bytes, kMaxFileBytes);
}

Result<LoadedDocument> loadDocument(const std::filesystem::path& path) {
  const Result<std::string> text = readWholeFile(path, {.what = "pipeline file", .maxMiB = kMaxFileBytes >> 20U});
  if (!text) {
    const std::optional<std::string> foreign = foreignFileText(path);  // weights are larger than any pipeline
    return foreign ? Error{fmt::format("{}: {}", path.string(), *foreign)} : text.error();
  }
  const bool isPicture = pictureKindOf(*text).has_value();
  if (!isPicture && !holdsEmbedded(*text)) {
    if (const std::optional<std::string> foreign = foreignFileText(std::string_view(*text)))
      return Error{fmt::format("{}: {}", path.string(), *foreign)};
    return parseDocument(*text);
  }
  const Result<std::string> pipeline = isPicture ? pipelineIn(*text) : embeddedText(*text);
  if (!pipeline) return Error{fmt::format("{}: {}", path.string(), pipeline.error().message)};
  LoadedDocument loaded = parseDocument(*pipeline);
  loaded.isTakenOut = true;
  return loaded;
}

Result<void> saveDocument(const PipelineDocument& document, const std::filesystem::path& path) {
  if (document.isReadOnly())
    return Error{fmt::format(
        "{} is not saved: the pipeline has a newer major version of the format. Use a newer Fuseline to save it.",
        path.string())};
  return writeFileAtomically(path, [&](std::ostream& out) { out << serialize(document); });
}

}  // namespace fuseline
