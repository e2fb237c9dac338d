// Writes the pipeline file: fixed key order, unknown fields behind the known ones of their object, one op a line.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/document/json_text.h"
#include "core/support/atomic_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>
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
  const bool isRaw = !op.extra.is_object() && op.id.empty() && op.operation.empty() && op.attributes.empty();
  if (isRaw) return op.extra;
  Fields fields(op.extra);
  fields.addIf(!op.id.empty(), "id", op.id);
  fields.addIf(!op.operation.empty(), "op", op.operation);
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

  std::string write() {
    const Json file = fileObject();
    m_out = "{";
    for (const auto& [name, value] : file.items()) {
      startField(name, 2);
      if (name == "pipeline" && value.is_object())
        writePipeline(value);
      else
        writePretty(m_out, value, 2, 2 + name.size() + 5);
    }
    return m_out + "\n}\n";
  }

 private:
  Json fileObject() const {
    const PipelineDocument& document = m_document;
    Fields fields(bag(""));
    fields.addIf(!bag("").contains("$schema"), "$schema", kSchemaName);
    fields.add("format", kFormatName);
    fields.addIf(!bag("").contains("formatVersion"), "formatVersion", versionObject());
    fields.addIf(!document.symbols().empty() || !bag("symbols").empty(), "symbols", symbolsObject());
    fields.addIf(hasPipeline(), "pipeline", pipelineObject());
    fields.addIf(!document.recipe().is_null(), "recipe", document.recipe());
    fields.addIf(!document.fusion().is_null(), "fusion", document.fusion());
    const Json view = viewObject();
    fields.addIf(!view.empty(), "view", view);
    return std::move(fields).finish();
  }

  Json versionObject() const {
    const Json& extra = bag("formatVersion");
    Fields fields(extra);
    fields.addIf(!extra.contains("major"), "major", kFormatMajor);
    fields.addIf(!extra.contains("minor"), "minor", m_document.m_formatMinor);
    return std::move(fields).finish();
  }

  Json symbolsObject() const {
    Json::object_t members = m_document.symbols().get_ref<const Json::object_t&>();
    for (const auto& [name, value] : bag("symbols").items())
      if (!m_document.symbols().contains(name)) members.push_back({name, value});
    return Json(std::move(members));
  }

  bool hasPipeline() const {
    const PipelineDocument& document = m_document;
    return !document.ops().empty() || !document.inputs().empty() || !document.outputs().empty() ||
           !document.wires().empty() || !bag("").contains("pipeline");
  }

  Json pipelineObject() const {
    const Json& extra = bag("pipeline");
    Fields fields(extra);
    const auto add = [&](const char* name, const Json& list) {
      fields.addIf(!list.empty() || !extra.contains(name), name, list);
    };
    add("inputs", toJson(m_document.inputs()));
    add("ops", toJson(m_document.ops()));
    add("wires", toJson(m_document.wires()));
    add("outputs", toJson(m_document.outputs()));
    return std::move(fields).finish();
  }

  Json viewObject() const {
    Json::object_t positions;
    std::unordered_set<std::string_view> placed;
    for (const auto& [id, position] : m_document.positions()) {
      placed.insert(id);
      positions.push_back({id, Json::array({position.x, position.y})});
    }
    for (const auto& [id, value] : bag("positions").items())
      if (!placed.contains(id)) positions.push_back({id, value});
    Fields fields(bag("view"));
    const bool hasPositions = !positions.empty();
    fields.addIf(hasPositions, "positions", Json(std::move(positions)));
    return std::move(fields).finish();
  }

  void writePipeline(const Json& pipeline) {
    m_out += '{';
    for (const auto& [name, value] : pipeline.items()) {
      startField(name, 4);
      if (name == "ops" && value.is_array())
        writeBroken(m_out, value, 4);
      else
        writePretty(m_out, value, 4, 4 + name.size() + 5);
    }
    m_out += "\n  }";
  }

  void startField(const std::string& name, std::size_t indent) {
    if (m_out.back() != '{') m_out += ',';
    m_out += "\n" + std::string(indent, ' ') + Json(name).dump() + ": ";
  }

  const Json& bag(const std::string& name) const {
    static const Json empty = Json::object();
    const auto found = m_document.m_extra.find(name);
    return found == m_document.m_extra.end() ? empty : found->second;
  }

  const PipelineDocument& m_document;
  std::string m_out;
};

std::string serialize(const PipelineDocument& document) { return DocumentWriter(document).write(); }

std::string fileTooLarge(std::size_t bytes) {
  return fmt::format("The file has {} bytes; a pipeline file has at most {} (64 MiB).", bytes, kMaxFileBytes);
}

namespace {

Error fileError(std::string_view verb, const std::filesystem::path& path, int code) {
  return Error{fmt::format("Cannot {} {}: {}.", verb, path.string(), std::generic_category().message(code))};
}

}  // namespace

Result<LoadedDocument> loadDocument(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return Error{fmt::format("Cannot read {}: it is a folder, expected a pipeline file.", path.string())};
  std::ifstream file(path, std::ios::binary);
  if (!file) return fileError("read", path, errno);
  // The size is checked while reading: a pipe or a device does not report one.
  std::string text;
  std::vector<char> block(std::size_t{1} << 20U);
  while (file && text.size() <= kMaxFileBytes) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return fileError("read", path, errno);
  if (text.size() > kMaxFileBytes)
    return Error{fmt::format("{}: the file is larger than 64 MiB; that is no pipeline file.", path.string())};
  return parseDocument(text);
}

Result<void> saveDocument(const PipelineDocument& document, const std::filesystem::path& path) {
  if (document.isReadOnly())
    return Error{
        fmt::format("{} is not written: the pipeline comes from a newer major version of the format.", path.string())};
  return writeFileAtomically(path, [&](std::ostream& out) { out << serialize(document); });
}

}  // namespace fuseline
