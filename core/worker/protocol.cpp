// Requests and events as JSON lines.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/protocol.h"

#include "core/support/base64.h"
#include "core/support/field_table.h"
#include "core/support/text.h"
#include "core/worker/server.h"

#include <fstream>
#include <ios>

#include <fmt/format.h>

namespace fuseline {

template <>
struct EnumNames<RunPurpose> {
  static constexpr std::array kNames = {std::pair(RunPurpose::Times, "run"),
                                        std::pair(RunPurpose::Numerics, "numerics"),
                                        std::pair(RunPurpose::Capture, "capture")};
};

static std::string typeOf(const RunRequest& request) { return nameOf(request.purpose); }
static std::string typeOf(const CancelRequest&) { return "cancel"; }
static std::string typeOf(const DevicesRequest&) { return "devices"; }
static std::string typeOf(const QuitRequest&) { return "quit"; }
static std::string typeOf(const FileChunk&) { return "file"; }
static std::string typeOf(const HelloEvent&) { return "hello"; }
static std::string typeOf(const ProgressEvent&) { return "progress"; }
static std::string typeOf(const ResultEvent&) { return "result"; }
static std::string typeOf(const NumericsEvent&) { return "numerics"; }
static std::string typeOf(const CapturedEvent&) { return "captured"; }
static std::string typeOf(const ErrorEvent&) { return "error"; }
static std::string typeOf(const DevicesEvent&) { return "devices"; }

static const FieldTable<CaptureOrder>& fieldsOf(const CaptureOrder*) {
  static const FieldTable<CaptureOrder> table({field("tensors", &CaptureOrder::tensors),
                                               field("file", &CaptureOrder::file),
                                               field("limitBytes", &CaptureOrder::limitBytes)});
  return table;
}

static const FieldTable<RunRequest>& fieldsOf(const RunRequest*) {
  static const FieldTable<RuleSwitches> switches(
      {newField("without", &RuleSwitches::without), newField("with", &RuleSwitches::with)});
  static const auto table =
      FieldTable<RunRequest>(
          {field("id", &RunRequest::id), newField("name", &RunRequest::pipelineName),
           field("pipeline", &RunRequest::pipelineText), newField("settings", &RunRequest::settings),
           newField("variants", &RunRequest::variants), newField("tensors", &RunRequest::tensorsFile),
           newField("capture", &RunRequest::capture), newField("baseline", &RunRequest::besideText).formerly("beside"),
           newField("baselineName", &RunRequest::besideName).formerly("besideName")},
          [](JsonFields& fields, const RunRequest& request) {
            if (request.purpose == RunPurpose::Capture && fields.isNull("capture"))
              fields.refuse("capture", "this field is missing.");
          })
          .with(inlined(&RunRequest::switches, switches));
  return table;
}

static const FieldTable<CancelRequest>& fieldsOf(const CancelRequest*) {
  static const FieldTable<CancelRequest> table({field("id", &CancelRequest::id)});
  return table;
}

static const FieldTable<DevicesRequest>& fieldsOf(const DevicesRequest*) {
  static const FieldTable<DevicesRequest> table({field("id", &DevicesRequest::id)});
  return table;
}

static const FieldTable<QuitRequest>& fieldsOf(const QuitRequest*) {
  static const FieldTable<QuitRequest> table(std::vector<Field<QuitRequest>>{});
  return table;
}

static const FieldTable<FileChunk>& fieldsOf(const FileChunk*) {
  static const FieldTable<FileChunk> table(
      {field("name", &FileChunk::name, "Name of the file, without a path."),
       field("offset", &FileChunk::offset, "Offset in bytes; 0 starts the file again."),
       field("data", &FileChunk::data, "Contents of the file, in base64.")});
  return table;
}

static const FieldTable<HelloEvent>& fieldsOf(const HelloEvent*) {
  static const FieldTable<HelloEvent> table({field("version", &HelloEvent::version, "Version of the program."),
                                             field("protocol", &HelloEvent::protocol, "1.")});
  return table;
}

namespace {

template <class Event>
Field<Event> idField() {
  return field("id", &Event::id, "Id of the request; 0: for a line that was not a request.");
}

}  // namespace

static const FieldTable<ProgressEvent>& fieldsOf(const ProgressEvent*) {
  static const FieldTable<ProgressEvent> table(
      {idField<ProgressEvent>(),
       field("stage", &ProgressEvent::stage,
             "preparing, warming up, measuring, measuring peaks, comparing or capturing."),
       field("done", &ProgressEvent::done, "Number of steps done."),
       field("total", &ProgressEvent::total, "Number of steps in total.")});
  return table;
}

static const FieldTable<ResultEvent>& fieldsOf(const ResultEvent*) {
  static const FieldTable<ResultEvent> table({idField<ResultEvent>(), field("record", &ResultEvent::record),
                                              newField("baseline", &ResultEvent::beside).formerly("beside")});
  return table;
}

static const FieldTable<NumericsEvent>& fieldsOf(const NumericsEvent*) {
  static const FieldTable<NumericsEvent> table({idField<NumericsEvent>(), field("report", &NumericsEvent::report)});
  return table;
}

static const FieldTable<CapturedEvent>& fieldsOf(const CapturedEvent*) {
  static const FieldTable<CapturedEvent> table({idField<CapturedEvent>(), field("tensors", &CapturedEvent::tensors)});
  return table;
}

namespace {

Field<ErrorEvent> messageField() {
  return {"message", schema::text("Message, one sentence."),
          [](const ErrorEvent& event) { return Json(event.error.message); },
          [](JsonFields& fields, ErrorEvent& event) { fields.read("message", event.error.message); }};
}

Field<ErrorEvent> kindField() {
  return {
      "kind", schema::integer("Kind of error, by its exit code."),
      [](const ErrorEvent& event) { return Json(static_cast<int>(event.error.kind)); },
      [](JsonFields& fields, ErrorEvent& event) {
        int kind = 0;
        fields.read("kind", kind);
        if (kind < static_cast<int>(ErrorKind::InvalidInput) || kind > static_cast<int>(ErrorKind::ExpectationNotMet))
          fields.refuse("kind", fmt::format("expected 1 to 5, found {}.", kind));
        event.error.kind = static_cast<ErrorKind>(kind);
      }};
}

}  // namespace

static const FieldTable<ErrorEvent>& fieldsOf(const ErrorEvent*) {
  static const FieldTable<ErrorEvent> table(
      {idField<ErrorEvent>(), messageField(), kindField(),
       newField("isDeviceLost", &ErrorEvent::isDeviceLost, "Whether the worker refuses all further requests.")});
  return table;
}

static const FieldTable<DevicesEvent>& fieldsOf(const DevicesEvent*) {
  static const FieldTable<DevicesEvent> table(
      {idField<DevicesEvent>(),
       {"devices", schema::list(deviceSchema()), [](const DevicesEvent& event) { return event.devices; },
        [](JsonFields& fields, DevicesEvent& event) { fields.read("devices", event.devices); }}});
  return table;
}

namespace {

/// Compact, one line. Bytes that are not UTF-8 are replaced: a message must never break the stream.
template <class Message>
std::string lineOf(const Message& message) {
  Json json = {{"type", typeOf(message)}};
  json.update(fieldsOf(&message).toJson(message));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A parsed line and its "type".
struct TypedLine {
  Json json;
  std::string type;
};

Result<TypedLine> parseLine(std::string_view text) {
  Result<Json> json = parseJson(text);
  if (!json) return json.error();
  std::string type;
  JsonFields fields(*json, "");
  fields.read("type", type);
  if (fields.error()) return *fields.error();
  return TypedLine{std::move(*json), std::move(type)};
}

Error unknownType(std::string_view type, std::string_view known) {
  constexpr std::size_t kLongest = 40;
  return {fmt::format("/type: \"{}\" is not known. Valid values: {}.", cutText(type, kLongest), known)};
}

/// Fills a message of this type.
template <class Variant, class Message>
Result<Variant> readInto(Message message, const Json& json) {
  JsonFields fields(json, "");
  fieldsOf(&message).read(fields, message);
  if (fields.error()) return *fields.error();
  return Variant(std::move(message));
}

/// As the alternative of its type, from the I-th on.
template <class Variant, std::size_t I>
Result<Variant> decodeAs(const TypedLine& typed, std::string_view known) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return unknownType(typed.type, known);
  } else {
    const std::variant_alternative_t<I, Variant> message{};
    return typed.type == typeOf(message) ? readInto<Variant>(message, typed.json)
                                         : decodeAs<Variant, I + 1>(typed, known);
  }
}

template <class Event>
Json eventSchema(const Event& event) {
  schema::Fields fields = {{"type", schema::choice({typeOf(event)})}};
  for (const Field<Event>& each : fieldsOf(&event).fields()) fields.emplace_back(each.key, each.schema);
  return schema::object(fields);
}

}  // namespace

Result<void> sendInChunks(const std::string& path, const std::string& name,
                          const std::function<void(const FileChunk&)>& send) {
  constexpr std::streamsize kChunkBytes = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("{}: cannot be read. Check that the file is there.", path)};
  std::string bytes(static_cast<std::size_t>(kChunkBytes), '\0');
  std::int64_t offset = 0;
  do {
    file.read(bytes.data(), kChunkBytes);
    const auto numRead = static_cast<std::size_t>(file.gcount());
    send({.name = name, .offset = offset, .data = toBase64({bytes.data(), numRead})});
    offset += static_cast<std::int64_t>(numRead);
  } while (file);
  return {};
}

Result<void> writeChunk(const FileChunk& chunk, const std::string& path) {
  const std::optional<std::string> bytes = fromBase64(chunk.data);
  if (!bytes) return Error{fmt::format("{}: a part of the file is not base64.", chunk.name)};
  std::ofstream file(path, chunk.offset == 0 ? std::ios::binary : std::ios::binary | std::ios::app);
  if (chunk.offset > 0 && static_cast<std::int64_t>(file.seekp(0, std::ios::end).tellp()) != chunk.offset)
    return Error{fmt::format("{}: a part of the file is missing before byte {}.", chunk.name, chunk.offset)};
  if (!(file << *bytes).flush())
    return Error{fmt::format("{}: cannot be written. The disk may be full.", path), ErrorKind::RunFailed};
  return {};
}

std::string encode(const WorkerRequest& request) {
  return std::visit([](const auto& message) { return lineOf(message); }, request);
}

std::string encode(const WorkerEvent& event) {
  return std::visit([](const auto& message) { return lineOf(message); }, event);
}

Result<WorkerRequest> decodeRequest(std::string_view text) {
  const Result<TypedLine> typed = parseLine(text);
  if (!typed) return typed.error();
  if (const auto purpose = enumNamed<RunPurpose>(typed->type))
    return readInto<WorkerRequest>(RunRequest{.purpose = *purpose}, typed->json);
  return decodeAs<WorkerRequest, 0>(*typed, "run, numerics, capture, cancel, devices, quit, file");
}

int requestId(std::string_view text) {
  int id = 0;
  const Result<Json> json = parseJson(text);
  if (json) JsonFields(*json, "").read("id", id, Presence::Optional);
  return id;
}

Result<WorkerEvent> decodeEvent(std::string_view text) {
  const Result<TypedLine> typed = parseLine(text);
  if (!typed) return typed.error();
  return decodeAs<WorkerEvent, 0>(*typed, "hello, progress, result, numerics, captured, error, devices, file");
}

Json workerEventSchema() {
  return schema::oneOf({eventSchema(HelloEvent()), eventSchema(ProgressEvent()), eventSchema(ResultEvent()),
                        eventSchema(NumericsEvent()), eventSchema(CapturedEvent()), eventSchema(ErrorEvent()),
                        eventSchema(DevicesEvent()), eventSchema(FileChunk())});
}

}  // namespace fuseline
