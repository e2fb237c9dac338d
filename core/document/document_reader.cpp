// Reads the pipeline file. This file reports problems of the text and its structure; problems of the
// pipeline itself is found by lowering, which also sees edited documents.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/field_reader.h"
#include "core/document/file_format.h"
#include "core/document/format_version.h"

#include <array>
#include <limits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::array<std::string_view, 12> kFileFields = {"$schema", "format",   "formatVersion", "symbols",
                                                          "blocks",  "pipeline", "recipe",        "fusion",
                                                          "view",    "weights",  "onnx",          "extensionsRequired"};
}  // namespace

class DocumentReader {
 public:
  explicit DocumentReader(std::string_view text) : m_numBytes(text.size()), m_reader(text, kFileFields) {}

  explicit DocumentReader(const Json& file) : m_reader(file, kFileFields) {}

  LoadedDocument read() {
    JsonTree::SyntaxError error;
    if (m_numBytes > kMaxFileBytes)
      giveUp("too-large", 0, fileTooLarge(m_numBytes));
    else if (!m_reader.parse(error))
      giveUp(error.code, error.offset, error.message);
    else
      readFile();
    m_loaded.diagnostics = m_reader.takeDiagnostics();
    m_loaded.sourceMap = m_reader.takeSourceMap();
    return std::move(m_loaded);
  }

 private:
  using Index = FieldReader::Index;
  using Fields = FieldReader::Fields;

  PipelineDocument& document() { return m_loaded.document; }

  void giveUp(std::string code, std::size_t offset, std::string message) {
    m_loaded.isUnreadable = true;
    m_reader.report(Severity::Error, std::move(code), offset, "", std::move(message));
  }

  Json& bag(const std::string& name) { return document().m_extra.try_emplace(name, Json::object()).first->second; }

  static Json& bagOf(DocumentBlock& block, const std::string& name) {
    return block.extra.try_emplace(name, Json::object()).first->second;
  }

  static bool isEmptyBag(const std::pair<const std::string, Json>& bag) { return bag.second.empty(); }

  void readFile() {
    if (!m_reader.tree().isObject(0)) {
      giveUp("wrong-type", 0, fmt::format("Expected a JSON object, found {}.", m_reader.kind(0)));
      return;
    }
    m_reader.locate(0, "");
    Json& extra = bag("");
    const Fields fields = m_reader.openObject(0, "", extra, kFileFields);
    readHeader(fields, extra);
    if (const auto symbols = m_reader.object(fields, "symbols", "", extra)) readSymbols(*symbols);
    if (const auto blocks = m_reader.object(fields, "blocks", "", extra)) readBlocks(*blocks);
    if (const auto pipeline = m_reader.object(fields, "pipeline", "", extra))
      readBlock(*pipeline, "/pipeline", document().m_pipeline, {"inputs", "ops", "wires", "outputs"});
    else if (!fields.contains("pipeline"))
      m_reader.report(Severity::Error, "missing-field", m_reader.offset(0), "", "The file has no \"pipeline\".");
    document().m_recipe = readAnything(fields, "recipe");
    document().m_fusion = readAnything(fields, "fusion");
    for (const char* const name : {"weights", "onnx"})
      if (Json section = readAnything(fields, name); !section.is_null()) extra[name] = std::move(section);
    if (const auto view = m_reader.object(fields, "view", "", extra)) readView(*view, "/view", document().m_pipeline);
    m_loaded.isUnreadable = !fields.contains("pipeline");
    std::erase_if(document().m_extra, isEmptyBag);
    std::erase_if(document().m_pipeline.extra, isEmptyBag);
  }

  void readHeader(const Fields& fields, Json& extra) {
    if (const auto schema = FieldReader::find(fields, "$schema");
        schema && m_reader.tree()[*schema].scalar != Json(kSchemaName))
      extra["$schema"] = m_reader.tree().json(*schema);
    const auto format = FieldReader::find(fields, "format");
    if (!format)
      m_reader.report(Severity::Error, "wrong-format", m_reader.offset(0), "",
                      fmt::format("The file has no \"format\"; expected \"format\": \"{}\".", kFormatName));
    else if (m_reader.tree()[*format].scalar != Json(kFormatName))
      m_reader.report(Severity::Error, "wrong-format", m_reader.offset(*format), "/format",
                      m_reader.tree()[*format].scalar == Json(kRunFormatName)
                          ? "The file is a measured run, not a pipeline. Open it in the designer, or use `fuseline "
                            "compare` or `fuseline export`."
                          : fmt::format("The format is {}; expected \"{}\".", m_reader.excerpt(*format), kFormatName));
    if (const auto required = FieldReader::find(fields, "extensionsRequired")) readRequired(*required, extra);
    if (const auto version = m_reader.object(fields, "formatVersion", "", extra))
      readVersion(*version);
    else if (!fields.contains("formatVersion"))
      m_reader.report(
          Severity::Warning, "missing-field", m_reader.offset(0), "",
          fmt::format("The file has no \"formatVersion\"; reading it as {}.{}.", kFormatMajor, kFormatMinor));
  }

  /// This program knows no extension.
  void readRequired(Index i, Json& extra) {
    const Json& required = extra["extensionsRequired"] = m_reader.tree().json(i);
    if (required.is_array() && required.empty()) return;
    m_reader.report(Severity::Error, "required-extension", m_reader.offset(i), "/extensionsRequired",
                    fmt::format("The file requires extensions that this program does not know: {}. Remove them, or "
                                "use the program that wrote the file.",
                                required.is_array() ? required.front().dump() : m_reader.excerpt(i)));
  }

  void readVersion(Index i) {
    Json& extra = bag("formatVersion");
    const Fields fields = m_reader.openObject(i, "/formatVersion", extra, {"major", "minor"});
    const int major = versionNumber(fields, "major", extra).value_or(kFormatMajor);
    const int minor = versionNumber(fields, "minor", extra).value_or(kFormatMinor);
    document().m_formatMinor = minor;
    if (major > kFormatMajor) {
      document().m_isReadOnly = true;
      extra["major"] = major;
      m_reader.report(Severity::Error, "newer-major", m_reader.offset(i), "/formatVersion",
                      fmt::format("The file has format version {}.{}, but this program supports {}.{} and opens it "
                                  "read-only. Use a newer Fuseline to edit or run it.",
                                  major, minor, kFormatMajor, kFormatMinor));
    } else if (minor > kFormatMinor) {
      m_reader.report(Severity::Warning, "newer-minor", m_reader.offset(i), "/formatVersion",
                      fmt::format("The file has format version {}.{}; this program supports {}.{}. Unknown parts are "
                                  "kept and written back.",
                                  major, minor, kFormatMajor, kFormatMinor));
    }
  }

  std::optional<int> versionNumber(const Fields& fields, std::string_view name, Json& extra) {
    const auto i = FieldReader::find(fields, name);
    if (!i) return std::nullopt;
    const Json& value = m_reader.tree()[*i].scalar;
    const bool isVersion = value.is_number_integer() && value >= 0 && value <= std::numeric_limits<int>::max();
    if (isVersion) return value.get<int>();
    m_reader.wrongType(*i, fmt::format("/formatVersion/{}", name), "a version number", extra, name);
    return std::nullopt;
  }

  void readSymbols(Index i) {
    m_reader.locate(i, "/symbols");
    Json::object_t symbols;
    m_reader.forEachMember(i, "/symbols", [&](std::string_view name, Index value, const std::string& pointer) {
      const Json& scalar = m_reader.tree()[value].scalar;
      m_reader.locate(value, pointer);
      if (scalar.is_null())
        m_reader.wrongType(value, pointer, "an integer or an expression", bag("symbols"), name);
      else
        symbols.push_back({std::string(name), m_reader.tree().json(value)});
    });
    document().m_symbols = Json(std::move(symbols));
  }

  void readBlocks(Index i) {
    m_reader.locate(i, "/blocks");
    m_reader.forEachMember(i, "/blocks", [&](std::string_view name, Index value, const std::string& pointer) {
      if (!m_reader.tree().isObject(value))
        return m_reader.wrongType(value, pointer, "a block (an object)", bag("blocks"), name);
      DocumentBlock block;
      const Fields fields = readBlock(value, pointer, block, {"inputs", "ops", "wires", "outputs", "view"});
      if (const auto view = m_reader.object(fields, "view", pointer, bagOf(block, "")))
        readView(*view, pointer + "/view", block);
      std::erase_if(block.extra, isEmptyBag);
      document().m_blocks.emplace_back(name, std::move(block));
    });
  }

  // The pipeline itself, or a block. Returns its fields.
  Fields readBlock(Index i, const std::string& pointer, DocumentBlock& block,
                   std::initializer_list<std::string_view> known) {
    Json& extra = bagOf(block, "");
    m_reader.locate(i, pointer);
    Fields fields = m_reader.openObject(i, pointer, extra, known);
    const auto forEach = [&](std::string_view list, auto readItem) {
      m_reader.forEachElement(fields, list, pointer, extra,
                              [&](Index item, const std::string& place) { (this->*readItem)(item, place, block); });
    };
    forEach("inputs", &DocumentReader::readInput);
    forEach("ops", &DocumentReader::readOp);
    forEach("wires", &DocumentReader::readWire);
    forEach("outputs", &DocumentReader::readOutput);
    return fields;
  }

  void readInput(Index i, const std::string& pointer, DocumentBlock& block) {
    DocumentInput input{.dtype = {}, .shape = nullptr};
    if (m_reader.isItem(i, pointer, "an input", input.extra)) {
      const Fields fields = m_reader.openObject(i, pointer, input.extra, {"id", "dtype", "shape", "requires_grad"});
      input.id = m_reader.string(fields, "id", pointer, input.extra);
      input.dtype = m_reader.string(fields, "dtype", pointer, input.extra);
      if (const auto shape = FieldReader::find(fields, "shape")) {
        m_reader.locateAll(*shape, pointer + "/shape");
        input.shape = m_reader.tree().json(*shape);
      }
      input.requiresGradient = m_reader.boolean(fields, "requires_grad", pointer, input.extra);
    }
    block.inputs.push_back(std::move(input));
  }

  void readOp(Index i, const std::string& pointer, DocumentBlock& block) {
    DocumentOp op;
    if (m_reader.isItem(i, pointer, "an op", op.extra)) {
      const Fields fields = m_reader.openObject(i, pointer, op.extra, {"id", "op", "bypassed", "attributes"});
      op.id = m_reader.string(fields, "id", pointer, op.extra);
      op.operation = m_reader.string(fields, "op", pointer, op.extra);
      op.bypassed = m_reader.boolean(fields, "bypassed", pointer, op.extra);
      if (const auto attributes = m_reader.object(fields, "attributes", pointer, op.extra)) {
        m_reader.locateAll(*attributes, pointer + "/attributes");
        op.attributes = m_reader.tree().json(*attributes);
        m_reader.noteDuplicates(*attributes, pointer + "/attributes");
      }
    }
    block.ops.push_back(std::move(op));
  }

  void readWire(Index i, const std::string& pointer, DocumentBlock& block) {
    const auto ends = m_reader.tree().isArray(i) ? m_reader.tree().children(i) : std::vector<JsonTree::Child>{};
    const bool isWire =
        ends.size() == 2 && m_reader.tree().isString(ends[0].value) && m_reader.tree().isString(ends[1].value);
    if (!isWire) {
      m_reader.report(
          Severity::Error, "wrong-type", m_reader.offset(i), pointer,
          fmt::format("A wire is {}; expected a pair of texts such as [\"norm.y\", \"fc1.x\"]. It is ignored.",
                      m_reader.excerpt(i)));
      return;
    }
    // The position is stored under the wire's index in the document, which lowering uses.
    const std::string list = pointer.substr(0, pointer.rfind('/'));
    const std::string place = fmt::format("{}/{}", list, block.wires.size());
    m_reader.locate(i, place);
    m_reader.locate(ends[0].value, place + "/0");
    m_reader.locate(ends[1].value, place + "/1");
    block.wires.push_back(
        {parseEndpoint(m_reader.tree().text(ends[0].value)), parseEndpoint(m_reader.tree().text(ends[1].value))});
  }

  void readOutput(Index i, const std::string& pointer, DocumentBlock& block) {
    DocumentOutput output;
    if (m_reader.isItem(i, pointer, "an output", output.extra)) {
      const Fields fields = m_reader.openObject(i, pointer, output.extra, {"id", "from"});
      output.id = m_reader.string(fields, "id", pointer, output.extra);
      output.from = parseEndpoint(m_reader.string(fields, "from", pointer, output.extra));
    }
    block.outputs.push_back(std::move(output));
  }

  Json readAnything(const Fields& fields, const std::string& name) {
    const auto i = FieldReader::find(fields, name);
    if (!i) return nullptr;
    m_reader.noteDuplicatesBelow(*i, "/" + name);
    return m_reader.tree().json(*i);
  }

  void readView(Index i, const std::string& pointer, DocumentBlock& block) {
    Json& extra = bagOf(block, "view");
    const Fields fields = m_reader.openObject(i, pointer, extra, {"positions", "frames"});
    readFrames(fields, pointer, block);
    const auto positions = m_reader.object(fields, "positions", pointer, extra);
    if (!positions) return;
    m_reader.forEachMember(
        *positions, pointer + "/positions", [&](std::string_view id, Index value, const std::string& place) {
          if (const auto position = readPosition(value))
            block.positions.emplace_back(id, *position);
          else
            m_reader.wrongType(value, place, "two integers", bagOf(block, "positions"), id, Severity::Warning);
        });
  }

  std::optional<Position> readPosition(Index i) const {
    const std::vector<int> parts = m_reader.integers(i);
    return parts.size() == 2 ? std::optional(Position{parts[0], parts[1]}) : std::nullopt;
  }

  // Nothing that is wrong with frames keeps a pipeline from running, so all of it is a warning.
  void readFrames(const Fields& fields, const std::string& pointer, DocumentBlock& block) {
    std::unordered_set<std::string> ids;
    m_reader.forEachElement(
        fields, "frames", pointer, bagOf(block, "view"),
        [&](Index item, const std::string& place) {
          block.frames.push_back(readFrame(item, place));
          const std::string& id = block.frames.back().id;
          if (!id.empty() && !ids.insert(id).second)
            m_reader.report(Severity::Warning, "duplicate-id", m_reader.offset(item), place,
                            fmt::format("Two frames have the id {}; this one is not drawn.", id));
        },
        Severity::Warning);
  }

  DocumentFrame readFrame(Index i, const std::string& pointer) {
    DocumentFrame frame;
    if (!m_reader.isItem(i, pointer, "a frame", frame.extra, Severity::Warning)) return frame;
    const Fields fields =
        m_reader.openObject(i, pointer, frame.extra, {"id", "title", "text", "area", "color", "locked"});
    frame.id = m_reader.text(fields, "id", pointer, frame.extra).value_or("");
    frame.title = m_reader.text(fields, "title", pointer, frame.extra).value_or("");
    frame.text = m_reader.text(fields, "text", pointer, frame.extra);
    frame.area = readArea(fields, pointer, frame.extra);
    frame.color = m_reader.text(fields, "color", pointer, frame.extra).value_or("");
    frame.locked = m_reader.boolean(fields, "locked", pointer, frame.extra, Severity::Warning);
    for (const char* name : {"id", "area"})
      if (!fields.contains(name))
        m_reader.report(Severity::Warning, "missing-field", m_reader.offset(i), pointer,
                        fmt::format("A frame has no \"{}\"; it is kept, but not drawn.", name));
    return frame;
  }

  std::optional<FrameArea> readArea(const Fields& fields, const std::string& pointer, Json& extra) {
    const auto i = FieldReader::find(fields, "area");
    if (!i) return std::nullopt;
    const std::vector<int> parts = m_reader.integers(*i);
    if (parts.size() == 4 && isFrameArea(parts[0], parts[1], parts[2], parts[3]))
      return FrameArea{parts[0], parts[1], parts[2], parts[3]};
    m_reader.wrongType(*i, pointer + "/area",
                       fmt::format("four integers: x and y (magnitude at most {}), width and height (1 to {})",
                                   kMaxFramePlace, kMaxFrameSide),
                       extra, "area", Severity::Warning);
    return std::nullopt;
  }

  std::size_t m_numBytes = 0;
  FieldReader m_reader;
  LoadedDocument m_loaded;
};

LoadedDocument parseDocument(std::string_view text) { return DocumentReader(text).read(); }

LoadedDocument readDocument(const Json& file) { return DocumentReader(file).read(); }

SourceMap::Place SourceMap::find(std::string_view pointer) const {
  while (true) {
    if (const auto found = places.find(pointer); found != places.end()) return found->second;
    if (pointer.empty()) return {};
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
}

}  // namespace fuseline
