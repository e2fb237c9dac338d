// Reads the pipeline file. This file reports problems of the text and its structure; problems of the
// pipeline itself is found by lowering, which also sees edited documents.
// A value of the wrong type stays in the extra bag of its object under its own name, so that saving loses nothing.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/document/json_text.h"
#include "core/document/json_tree.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::array<std::string_view, 9> kFileFields = {"$schema",  "format", "formatVersion", "symbols", "blocks",
                                                         "pipeline", "recipe", "fusion",        "view"};
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view kindOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::number_float: return "a real number";
    default: return "an integer";
  }
}

}  // namespace

class DocumentReader {
 public:
  explicit DocumentReader(std::string_view text) : m_text(text), m_lines(text) {}

  LoadedDocument read() {
    if (m_text.size() > kMaxFileBytes) {
      giveUp("too-large", 0, fileTooLarge(m_text.size()));
      return std::move(m_loaded);
    }
    stripByteOrderMark();
    JsonTree::SyntaxError error;
    m_tree = JsonTree::parse(m_text.substr(m_start), error);
    if (m_tree.isEmpty())
      giveUp(error.code, error.offset, error.message);
    else
      readFile();
    return std::move(m_loaded);
  }

 private:
  using Index = JsonTree::Index;
  using Fields = std::unordered_map<std::string_view, Index>;

  PipelineDocument& document() { return m_loaded.document; }

  void giveUp(std::string code, std::size_t offset, std::string message) {
    m_loaded.isUnreadable = true;
    report(Severity::Error, std::move(code), offset, "", std::move(message));
  }

  Json& bag(const std::string& name) { return document().m_extra.try_emplace(name, Json::object()).first->second; }

  static Json& bagOf(DocumentBlock& block, const std::string& name) {
    return block.extra.try_emplace(name, Json::object()).first->second;
  }

  static bool isEmptyBag(const std::pair<const std::string, Json>& bag) { return bag.second.empty(); }

  void stripByteOrderMark() {
    if (!m_text.starts_with(kByteOrderMark)) return;
    m_start = kByteOrderMark.size();
    report(Severity::Note, "byte-order-mark", 0, "",
           "The file begins with a byte-order mark, which JSON does not allow. It will not be written again.");
  }

  void readFile() {
    if (!m_tree.isObject(0)) {
      giveUp("wrong-type", 0, fmt::format("A pipeline file is an object, not {}.", kind(0)));
      return;
    }
    locate(0, "");
    Json& extra = bag("");
    const Fields fields = openObject(0, "", extra, kFileFields);
    readHeader(fields, extra);
    if (const auto symbols = object(fields, "symbols", "", extra)) readSymbols(*symbols);
    if (const auto blocks = object(fields, "blocks", "", extra)) readBlocks(*blocks);
    if (const auto pipeline = object(fields, "pipeline", "", extra))
      readBlock(*pipeline, "/pipeline", document().m_pipeline, {"inputs", "ops", "wires", "outputs"});
    else if (!fields.contains("pipeline"))
      report(Severity::Error, "missing-field", m_tree[0].offset, "", "The file has no \"pipeline\".");
    document().m_recipe = readAnything(fields, "recipe");
    document().m_fusion = readAnything(fields, "fusion");
    if (const auto view = object(fields, "view", "", extra)) readView(*view, "/view", document().m_pipeline);
    m_loaded.isUnreadable = !fields.contains("pipeline");
    std::erase_if(document().m_extra, isEmptyBag);
    std::erase_if(document().m_pipeline.extra, isEmptyBag);
  }

  void readHeader(const Fields& fields, Json& extra) {
    if (const auto schema = find(fields, "$schema"); schema && m_tree[*schema].scalar != Json(kSchemaName))
      extra["$schema"] = m_tree.json(*schema);
    const auto format = find(fields, "format");
    if (!format)
      report(Severity::Error, "wrong-format", m_tree[0].offset, "",
             fmt::format("The file has no \"format\"; expected \"format\": \"{}\".", kFormatName));
    else if (m_tree[*format].scalar != Json(kFormatName))
      report(Severity::Error, "wrong-format", m_tree[*format].offset, "/format",
             m_tree[*format].scalar == Json(kRunFormatName)
                 ? "The file is a measured run, not a pipeline. Open it in the designer, or use `fuseline compare` or "
                   "`fuseline export`."
                 : fmt::format("The format is {}; expected \"{}\".", excerpt(*format), kFormatName));
    if (const auto version = object(fields, "formatVersion", "", extra))
      readVersion(*version);
    else if (!fields.contains("formatVersion"))
      report(Severity::Warning, "missing-field", m_tree[0].offset, "",
             fmt::format("The file has no \"formatVersion\"; reading it as {}.{}.", kFormatMajor, kFormatMinor));
  }

  void readVersion(Index i) {
    Json& extra = bag("formatVersion");
    const Fields fields = openObject(i, "/formatVersion", extra, {"major", "minor"});
    const int major = versionNumber(fields, "major", extra).value_or(kFormatMajor);
    const int minor = versionNumber(fields, "minor", extra).value_or(kFormatMinor);
    document().m_formatMinor = minor;
    if (major > kFormatMajor) {
      document().m_isReadOnly = true;
      extra["major"] = major;
      report(Severity::Error, "newer-major", m_tree[i].offset, "/formatVersion",
             fmt::format("The file has format version {}.{}, but this program supports {}.{} and opens it read-only. "
                         "Use a newer Fuseline to edit or run it.",
                         major, minor, kFormatMajor, kFormatMinor));
    } else if (minor > kFormatMinor) {
      report(Severity::Warning, "newer-minor", m_tree[i].offset, "/formatVersion",
             fmt::format("The file has format version {}.{}; this program supports {}.{}. Unknown parts are kept and "
                         "written back.",
                         major, minor, kFormatMajor, kFormatMinor));
    }
  }

  std::optional<int> versionNumber(const Fields& fields, std::string_view name, Json& extra) {
    const auto i = find(fields, name);
    if (!i) return std::nullopt;
    const Json& value = m_tree[*i].scalar;
    const bool isVersion = value.is_number_integer() && value >= 0 && value <= std::numeric_limits<int>::max();
    if (isVersion) return value.get<int>();
    wrongType(*i, fmt::format("/formatVersion/{}", name), "a version number", extra, name);
    return std::nullopt;
  }

  void readSymbols(Index i) {
    locate(i, "/symbols");
    Json::object_t symbols;
    forEachMember(i, "/symbols", [&](std::string_view name, Index value, const std::string& pointer) {
      const Json& scalar = m_tree[value].scalar;
      locate(value, pointer);
      if (scalar.is_null())
        wrongType(value, pointer, "an integer or an expression", bag("symbols"), name);
      else
        symbols.push_back({std::string(name), m_tree.json(value)});
    });
    document().m_symbols = Json(std::move(symbols));
  }

  void readBlocks(Index i) {
    locate(i, "/blocks");
    forEachMember(i, "/blocks", [&](std::string_view name, Index value, const std::string& pointer) {
      if (!m_tree.isObject(value)) return wrongType(value, pointer, "a block (an object)", bag("blocks"), name);
      DocumentBlock block;
      const Fields fields = readBlock(value, pointer, block, {"inputs", "ops", "wires", "outputs", "view"});
      if (const auto view = object(fields, "view", pointer, bagOf(block, "")))
        readView(*view, pointer + "/view", block);
      std::erase_if(block.extra, isEmptyBag);
      document().m_blocks.emplace_back(name, std::move(block));
    });
  }

  // The pipeline itself, or a block. Returns its fields.
  Fields readBlock(Index i, const std::string& pointer, DocumentBlock& block,
                   std::initializer_list<std::string_view> known) {
    Json& extra = bagOf(block, "");
    locate(i, pointer);
    Fields fields = openObject(i, pointer, extra, known);
    const auto forEach = [&](std::string_view list, auto readItem) {
      forEachElement(fields, list, pointer, extra,
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
    if (isItem(i, pointer, "an input", input.extra)) {
      const Fields fields = openObject(i, pointer, input.extra, {"id", "dtype", "shape", "requires_grad"});
      input.id = string(fields, "id", pointer, input.extra);
      input.dtype = string(fields, "dtype", pointer, input.extra);
      if (const auto shape = find(fields, "shape")) {
        locateAll(*shape, pointer + "/shape");
        input.shape = m_tree.json(*shape);
      }
      input.requiresGradient = boolean(fields, "requires_grad", pointer, input.extra);
    }
    block.inputs.push_back(std::move(input));
  }

  void readOp(Index i, const std::string& pointer, DocumentBlock& block) {
    DocumentOp op;
    if (isItem(i, pointer, "an op", op.extra)) {
      const Fields fields = openObject(i, pointer, op.extra, {"id", "op", "bypassed", "attributes"});
      op.id = string(fields, "id", pointer, op.extra);
      op.operation = string(fields, "op", pointer, op.extra);
      op.bypassed = boolean(fields, "bypassed", pointer, op.extra);
      if (const auto attributes = object(fields, "attributes", pointer, op.extra)) {
        locateAll(*attributes, pointer + "/attributes");
        op.attributes = m_tree.json(*attributes);
        noteDuplicates(*attributes, pointer + "/attributes");
      }
    }
    block.ops.push_back(std::move(op));
  }

  void readWire(Index i, const std::string& pointer, DocumentBlock& block) {
    const auto ends = m_tree.isArray(i) ? m_tree.children(i) : std::vector<JsonTree::Child>{};
    const bool isWire = ends.size() == 2 && m_tree.isString(ends[0].value) && m_tree.isString(ends[1].value);
    if (!isWire) {
      report(Severity::Error, "wrong-type", m_tree[i].offset, pointer,
             fmt::format("A wire is {}; expected a pair of texts such as [\"norm.y\", \"fc1.x\"]. It is ignored.",
                         excerpt(i)));
      return;
    }
    // The position is stored under the wire's index in the document, which lowering uses.
    const std::string list = pointer.substr(0, pointer.rfind('/'));
    const std::string place = fmt::format("{}/{}", list, block.wires.size());
    locate(i, place);
    locate(ends[0].value, place + "/0");
    locate(ends[1].value, place + "/1");
    block.wires.push_back({parseEndpoint(m_tree.text(ends[0].value)), parseEndpoint(m_tree.text(ends[1].value))});
  }

  void readOutput(Index i, const std::string& pointer, DocumentBlock& block) {
    DocumentOutput output;
    if (isItem(i, pointer, "an output", output.extra)) {
      const Fields fields = openObject(i, pointer, output.extra, {"id", "from"});
      output.id = string(fields, "id", pointer, output.extra);
      output.from = parseEndpoint(string(fields, "from", pointer, output.extra));
    }
    block.outputs.push_back(std::move(output));
  }

  Json readAnything(const Fields& fields, const std::string& name) {
    const auto i = find(fields, name);
    if (!i) return nullptr;
    noteDuplicatesBelow(*i, "/" + name);
    return m_tree.json(*i);
  }

  void readView(Index i, const std::string& pointer, DocumentBlock& block) {
    Json& extra = bagOf(block, "view");
    const Fields fields = openObject(i, pointer, extra, {"positions", "frames"});
    readFrames(fields, pointer, block);
    const auto positions = object(fields, "positions", pointer, extra);
    if (!positions) return;
    forEachMember(*positions, pointer + "/positions", [&](std::string_view id, Index value, const std::string& place) {
      if (const auto position = readPosition(value))
        block.positions.emplace_back(id, *position);
      else
        wrongType(value, place, "two integers", bagOf(block, "positions"), id, Severity::Warning);
    });
  }

  std::optional<Position> readPosition(Index i) const {
    const std::vector<int> parts = integers(i);
    return parts.size() == 2 ? std::optional(Position{parts[0], parts[1]}) : std::nullopt;
  }

  // The integers of a list; empty if it has another element.
  std::vector<int> integers(Index i) const {
    std::vector<int> values;
    for (const JsonTree::Child& part : m_tree.isArray(i) ? m_tree.children(i) : std::vector<JsonTree::Child>{}) {
      const Json& value = m_tree[part.value].scalar;
      if (!value.is_number_integer() || value < std::numeric_limits<int>::min() ||
          value > std::numeric_limits<int>::max())
        return {};
      values.push_back(value.get<int>());
    }
    return values;
  }

  // Nothing that is wrong with frames keeps a pipeline from running, so all of it is a warning.
  void readFrames(const Fields& fields, const std::string& pointer, DocumentBlock& block) {
    std::unordered_set<std::string> ids;
    forEachElement(
        fields, "frames", pointer, bagOf(block, "view"),
        [&](Index item, const std::string& place) {
          block.frames.push_back(readFrame(item, place));
          const std::string& id = block.frames.back().id;
          if (!id.empty() && !ids.insert(id).second)
            report(Severity::Warning, "duplicate-id", m_tree[item].offset, place,
                   fmt::format("Two frames have the id {}; this one is not drawn.", id));
        },
        Severity::Warning);
  }

  DocumentFrame readFrame(Index i, const std::string& pointer) {
    DocumentFrame frame;
    if (!isItem(i, pointer, "a frame", frame.extra, Severity::Warning)) return frame;
    const Fields fields = openObject(i, pointer, frame.extra, {"id", "title", "text", "area", "color", "locked"});
    frame.id = text(fields, "id", pointer, frame.extra).value_or("");
    frame.title = text(fields, "title", pointer, frame.extra).value_or("");
    frame.text = text(fields, "text", pointer, frame.extra);
    frame.area = readArea(fields, pointer, frame.extra);
    frame.color = text(fields, "color", pointer, frame.extra).value_or("");
    frame.locked = boolean(fields, "locked", pointer, frame.extra, Severity::Warning);
    for (const char* name : {"id", "area"})
      if (!fields.contains(name))
        report(Severity::Warning, "missing-field", m_tree[i].offset, pointer,
               fmt::format("A frame has no \"{}\"; it is kept, but not drawn.", name));
    return frame;
  }

  std::optional<std::string> text(const Fields& fields, std::string_view name, const std::string& pointer,
                                  Json& extra) {
    const auto i = find(fields, name);
    if (!i) return std::nullopt;
    if (m_tree.isString(*i)) return m_tree.text(*i);
    wrongType(*i, fmt::format("{}/{}", pointer, name), "text", extra, name, Severity::Warning);
    return std::nullopt;
  }

  std::optional<FrameArea> readArea(const Fields& fields, const std::string& pointer, Json& extra) {
    const auto i = find(fields, "area");
    if (!i) return std::nullopt;
    const std::vector<int> parts = integers(*i);
    if (parts.size() == 4 && isFrameArea(parts[0], parts[1], parts[2], parts[3]))
      return FrameArea{parts[0], parts[1], parts[2], parts[3]};
    wrongType(*i, pointer + "/area",
              fmt::format("four integers: x and y, not beyond {}, width and height, from 1 to {}", kMaxFramePlace,
                          kMaxFrameSide),
              extra, "area", Severity::Warning);
    return std::nullopt;
  }

  Fields openObject(Index i, const std::string& pointer, Json& extra, std::initializer_list<std::string_view> known) {
    return openObject(i, pointer, extra, std::span(known.begin(), known.size()));
  }

  // The fields of an object by name; unknown ones go to the extra bag, repeated ones are reported.
  Fields openObject(Index i, const std::string& pointer, Json& extra, std::span<const std::string_view> known) {
    Fields fields;
    std::vector<std::pair<std::string, Json>> unknown;
    forEachMember(i, pointer, [&](std::string_view name, Index value, const std::string& memberPointer) {
      const bool isKnown = std::ranges::find(known, name) != known.end();
      if (isKnown) {
        fields.emplace(name, value);
        locate(value, memberPointer);
      } else {
        unknown.emplace_back(name, m_tree.json(value));
        noteDuplicatesBelow(value, memberPointer);
        warnOfUnknown(name, value, memberPointer, known);
      }
    });
    auto& bag = extra.get_ref<Json::object_t&>();
    for (auto& [name, value] : unknown) bag.push_back({std::move(name), std::move(value)});
    return fields;
  }

  // Fields of later versions are kept without a word; one that is nearly a known one, or belongs elsewhere, is not.
  void warnOfUnknown(std::string_view name, Index value, const std::string& pointer,
                     std::span<const std::string_view> known) {
    const bool isOfFile = pointer.find('/', 1) != std::string::npos && std::ranges::count(kFileFields, name) > 0;
    const std::string meant = isOfFile ? std::string() : misspelt(name, known);
    if (!isOfFile && meant.empty()) return;
    const std::string hint = isOfFile ? fmt::format("\"{}\" belongs in the outermost object of the file.", name)
                                      : fmt::format("Did you mean \"{}\"?", meant);
    report(Severity::Warning, "unknown-field", m_tree[value].offset, pointer,
           fmt::format("\"{}\" is not a field of this object and has no effect. {}", name, hint));
  }

  // use(name, value, pointer) for every member whose key is the first of its name.
  template <class Use>
  void forEachMember(Index i, const std::string& pointer, const Use& use) {
    Fields first;
    for (const JsonTree::Child& child : m_tree.children(i)) {
      const std::string& name = m_tree.text(child.key);
      const std::string memberPointer = pointer + "/" + escapedPointer(name);
      if (const auto [known, isNew] = first.emplace(name, child.key); isNew)
        use(name, child.value, memberPointer);
      else
        reportDuplicate(name, memberPointer, known->second, child.key);
    }
  }

  void reportDuplicate(const std::string& name, const std::string& pointer, Index first, Index second) {
    const auto [line, column] = place(m_tree[first].offset);
    report(
        Severity::Error, "duplicate-key", m_tree[second].offset, pointer,
        fmt::format(
            "The key \"{}\" occurs twice in one object, first in line {}, column {}. The second value {} is ignored.",
            name, line, column, excerpt(second + 1)));
  }

  void noteDuplicates(Index i, const std::string& pointer) {
    forEachMember(i, pointer, [&](std::string_view, Index value, const std::string& memberPointer) {
      noteDuplicatesBelow(value, memberPointer);
    });
  }

  void noteDuplicatesBelow(Index i, const std::string& pointer) {
    if (m_tree.isObject(i)) return noteDuplicates(i, pointer);
    if (!m_tree.isArray(i)) return;
    std::size_t index = 0;
    for (const JsonTree::Child& child : m_tree.children(i))
      noteDuplicatesBelow(child.value, fmt::format("{}/{}", pointer, index++));
  }

  template <class Use>
  void forEachElement(const Fields& fields, std::string_view name, const std::string& owner, Json& extra,
                      const Use& use, Severity severity = Severity::Error) {
    const auto i = find(fields, name);
    if (!i) return;
    const std::string pointer = fmt::format("{}/{}", owner, name);
    if (!m_tree.isArray(*i)) return wrongType(*i, pointer, "a list", extra, name, severity);
    std::size_t index = 0;
    for (const JsonTree::Child& child : m_tree.children(*i)) use(child.value, fmt::format("{}/{}", pointer, index++));
  }

  // An item that is not even an object is kept whole in place of its extra bag.
  bool isItem(Index i, const std::string& pointer, std::string_view what, Json& extra,
              Severity severity = Severity::Error) {
    locate(i, pointer);
    if (m_tree.isObject(i)) return true;
    report(severity, "wrong-type", m_tree[i].offset, pointer,
           fmt::format("Expected {} (an object), found {}.", what, excerpt(i)));
    extra = m_tree.json(i);
    return false;
  }

  static std::optional<Index> find(const Fields& fields, std::string_view name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<Index> object(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra) {
    const auto i = find(fields, name);
    if (!i || m_tree.isObject(*i)) return i;
    wrongType(*i, fmt::format("{}/{}", pointer, name), "an object", extra, name);
    return std::nullopt;
  }

  std::string string(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra) {
    const auto i = find(fields, name);
    if (!i) return {};
    if (m_tree.isString(*i)) return m_tree.text(*i);
    wrongType(*i, fmt::format("{}/{}", pointer, name), "text", extra, name);
    return {};
  }

  std::optional<bool> boolean(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra,
                              Severity severity = Severity::Error) {
    const auto i = find(fields, name);
    if (!i) return std::nullopt;
    if (m_tree[*i].scalar.is_boolean()) return m_tree[*i].scalar.get<bool>();
    wrongType(*i, fmt::format("{}/{}", pointer, name), "true or false", extra, name, severity);
    return std::nullopt;
  }

  void wrongType(Index i, const std::string& pointer, std::string_view expected, Json& extra, std::string_view name,
                 Severity severity = Severity::Error) {
    if (!extra.is_object()) extra = Json::object();
    extra.get_ref<Json::object_t&>().push_back({std::string(name), m_tree.json(i)});
    report(severity, "wrong-type", m_tree[i].offset, pointer,
           fmt::format("\"{}\" is {} ({}); expected {}.", name, excerpt(i), kind(i), expected));
  }

  std::string_view kind(Index i) const { return kindOf(m_tree[i].scalar); }

  std::string excerpt(Index i) const {
    if (m_tree.isObject(i)) return "{...}";
    if (m_tree.isArray(i)) return m_tree[i].end == i + 1 ? "[]" : "[...]";
    return shortened(inlineText(m_tree[i].scalar));
  }

  std::pair<int, int> place(std::size_t offset) const { return m_lines.place(m_start + offset); }

  void locate(Index i, const std::string& pointer) {
    const auto [line, column] = place(m_tree[i].offset);
    m_loaded.sourceMap.places.insert_or_assign(pointer, SourceMap::Place{line, column});
  }

  void locateAll(Index i, const std::string& pointer) {
    locate(i, pointer);
    std::size_t index = 0;
    for (const JsonTree::Child& child : m_tree.children(i)) {
      const std::string name = m_tree.isObject(i) ? escapedPointer(m_tree.text(child.key)) : std::to_string(index++);
      locateAll(child.value, pointer + "/" + name);
    }
  }

  void report(Severity severity, std::string code, std::size_t offset, std::string pointer, std::string message) {
    const auto [line, column] = place(offset);
    m_loaded.diagnostics.push_back({.severity = severity,
                                    .code = std::move(code),
                                    .pointer = std::move(pointer),
                                    .line = line,
                                    .column = column,
                                    .message = std::move(message)});
  }

  std::string_view m_text;
  std::size_t m_start = 0;  // behind a byte-order mark
  LineTable m_lines;
  JsonTree m_tree;
  LoadedDocument m_loaded;
};

LoadedDocument parseDocument(std::string_view text) { return DocumentReader(text).read(); }

SourceMap::Place SourceMap::find(std::string_view pointer) const {
  while (true) {
    if (const auto found = places.find(pointer); found != places.end()) return found->second;
    if (pointer.empty()) return {};
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
}

}  // namespace fuseline
