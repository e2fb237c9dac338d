// Requests and events as JSON lines.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/protocol.h"

#include "core/support/field_table.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Compact, one line. Bytes that are not UTF-8 are replaced: a message must never break the stream.
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const char* typeOf(RunPurpose purpose) {
  switch (purpose) {
    case RunPurpose::Times: return "run";
    case RunPurpose::Numerics: return "numerics";
    case RunPurpose::Capture: return "capture";
  }
  return "";
}

Json toJson(const CaptureOrder& order) {
  return {{"tensors", order.tensors}, {"file", order.file}, {"limitBytes", order.limitBytes}};
}

Json toJson(const RunRequest& request) {
  return {{"type", typeOf(request.purpose)},      {"id", request.id},
          {"name", request.pipelineName},         {"pipeline", request.pipelineText},
          {"settings", toJson(request.settings)}, {"variants", request.variants},
          {"without", request.switches.without},  {"with", request.switches.with},
          {"tensors", request.tensorsFile},       {"capture", toJson(request.capture)},
          {"beside", request.besideText},         {"besideName", request.besideName}};
}
Json toJson(const CancelRequest& request) { return {{"type", "cancel"}, {"id", request.id}}; }
Json toJson(const DevicesRequest& request) { return {{"type", "devices"}, {"id", request.id}}; }
Json toJson(const QuitRequest&) { return {{"type", "quit"}}; }

Json toJson(const HelloEvent& event) {
  return {{"type", "hello"}, {"version", event.version}, {"protocol", event.protocol}};
}
Json toJson(const ProgressEvent& event) {
  return {{"type", "progress"}, {"id", event.id}, {"stage", event.stage}, {"done", event.done}, {"total", event.total}};
}
Json toJson(const ResultEvent& event) {
  return {{"type", "result"},
          {"id", event.id},
          {"record", toJson(event.record)},
          {"beside", event.beside ? toJson(*event.beside) : Json()}};
}
Json toJson(const NumericsEvent& event) {
  return {{"type", "numerics"}, {"id", event.id}, {"report", toJson(event.report)}};
}
Json toJson(const CapturedEvent& event) {
  Json tensors = Json::array();
  for (const TensorSummary& tensor : event.tensors) tensors.push_back(toJson(tensor));
  return {{"type", "captured"}, {"id", event.id}, {"tensors", std::move(tensors)}};
}
Json toJson(const ErrorEvent& event) {
  return {{"type", "error"},
          {"id", event.id},
          {"message", event.error.message},
          {"kind", static_cast<int>(event.error.kind)},
          {"isDeviceLost", event.isDeviceLost}};
}
Json toJson(const DevicesEvent& event) { return {{"type", "devices"}, {"id", event.id}, {"devices", event.devices}}; }

template <class Message>
Result<Message> finish(const JsonFields& fields, Message message) {
  if (fields.error()) return *fields.error();
  return message;
}

template <class Variant, class Message>
Result<Variant> widen(Result<Message> message) {
  if (!message) return message.error();
  return Variant(std::move(*message));
}

CaptureOrder orderIn(JsonFields& fields) {
  CaptureOrder order;
  fields.read("tensors", order.tensors);
  fields.read("file", order.file);
  fields.read("limitBytes", order.limitBytes);
  return order;
}

Result<RunRequest> readRun(JsonFields& fields, RunPurpose purpose) {
  RunRequest request{.purpose = purpose};
  fields.read("id", request.id);
  fields.read("pipeline", request.pipelineText);
  fields.read("name", request.pipelineName, Presence::Optional);
  fields.read("variants", request.variants, Presence::Optional);
  fields.read("without", request.switches.without, Presence::Optional);
  fields.read("with", request.switches.with, Presence::Optional);
  fields.read("tensors", request.tensorsFile, Presence::Optional);
  fields.read("beside", request.besideText, Presence::Optional);
  fields.read("besideName", request.besideName, Presence::Optional);
  fields.readObject(
      "capture", [&](JsonFields& nested) { request.capture = orderIn(nested); },
      purpose == RunPurpose::Capture ? Presence::Required : Presence::Optional);
  readField(fields, "settings", request.settings, Presence::Optional);
  return finish(fields, std::move(request));
}

template <class Message>
Result<Message> readId(JsonFields& fields) {
  Message message;
  fields.read("id", message.id);
  return finish(fields, message);
}

Result<HelloEvent> readHello(JsonFields& fields) {
  HelloEvent event;
  fields.read("version", event.version);
  fields.read("protocol", event.protocol);
  return finish(fields, std::move(event));
}

Result<ProgressEvent> readProgress(JsonFields& fields) {
  ProgressEvent event;
  fields.read("id", event.id);
  fields.read("stage", event.stage);
  fields.read("done", event.done);
  fields.read("total", event.total);
  return finish(fields, std::move(event));
}

Result<ResultEvent> readResult(const Json& json, JsonFields& fields) {
  ResultEvent event;
  fields.read("id", event.id);
  if (!json.contains("record")) fields.refuse("record", "this field is missing.");
  if (fields.error()) return *fields.error();
  Result<RunRecord> record = runRecordFromJson(json["record"]);
  if (!record) return record.error();
  event.record = std::move(*record);
  if (json.value("beside", Json()).is_null()) return event;
  Result<RunRecord> beside = runRecordFromJson(json["beside"]);
  if (!beside) return beside.error();
  event.beside = std::move(*beside);
  return event;
}

Result<NumericsEvent> readNumerics(const Json& json, JsonFields& fields) {
  NumericsEvent event;
  fields.read("id", event.id);
  if (!json.contains("report")) fields.refuse("report", "this field is missing.");
  if (fields.error()) return *fields.error();
  Result<NumericsReport> report = numericsFromJson(json["report"]);
  if (!report) return report.error();
  event.report = std::move(*report);
  return event;
}

Result<CapturedEvent> readCaptured(JsonFields& fields) {
  CapturedEvent event;
  fields.read("id", event.id);
  fields.readObjects("tensors", [&](JsonFields& nested) { event.tensors.push_back(tensorSummaryIn(nested)); });
  return finish(fields, std::move(event));
}

Result<ErrorEvent> readError(JsonFields& fields) {
  ErrorEvent event;
  int kind = 0;
  fields.read("id", event.id);
  fields.read("message", event.error.message);
  fields.read("kind", kind);
  fields.read("isDeviceLost", event.isDeviceLost, Presence::Optional);
  if (kind < static_cast<int>(ErrorKind::InvalidInput) || kind > static_cast<int>(ErrorKind::ExpectationNotMet))
    fields.refuse("kind", fmt::format("expected 1 to 5, found {}.", kind));
  event.error.kind = static_cast<ErrorKind>(kind);
  return finish(fields, std::move(event));
}

Result<DevicesEvent> readDevices(JsonFields& fields) {
  DevicesEvent event;
  fields.read("id", event.id);
  fields.read("devices", event.devices);
  return finish(fields, std::move(event));
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

}  // namespace

std::string encode(const WorkerRequest& request) {
  return std::visit([](const auto& message) { return line(toJson(message)); }, request);
}

std::string encode(const WorkerEvent& event) {
  return std::visit([](const auto& message) { return line(toJson(message)); }, event);
}

Result<WorkerRequest> decodeRequest(std::string_view text) {
  Result<TypedLine> typed = parseLine(text);
  if (!typed) return typed.error();
  JsonFields fields(typed->json, "");
  if (typed->type == "run") return widen<WorkerRequest>(readRun(fields, RunPurpose::Times));
  if (typed->type == "numerics") return widen<WorkerRequest>(readRun(fields, RunPurpose::Numerics));
  if (typed->type == "capture") return widen<WorkerRequest>(readRun(fields, RunPurpose::Capture));
  if (typed->type == "cancel") return widen<WorkerRequest>(readId<CancelRequest>(fields));
  if (typed->type == "devices") return widen<WorkerRequest>(readId<DevicesRequest>(fields));
  if (typed->type == "quit") return WorkerRequest(QuitRequest{});
  return unknownType(typed->type, "run, numerics, capture, cancel, devices, quit");
}

int requestId(std::string_view text) {
  int id = 0;
  const Result<Json> json = parseJson(text);
  if (json) JsonFields(*json, "").read("id", id, Presence::Optional);
  return id;
}

Result<WorkerEvent> decodeEvent(std::string_view text) {
  Result<TypedLine> typed = parseLine(text);
  if (!typed) return typed.error();
  JsonFields fields(typed->json, "");
  if (typed->type == "hello") return widen<WorkerEvent>(readHello(fields));
  if (typed->type == "progress") return widen<WorkerEvent>(readProgress(fields));
  if (typed->type == "result") return widen<WorkerEvent>(readResult(typed->json, fields));
  if (typed->type == "numerics") return widen<WorkerEvent>(readNumerics(typed->json, fields));
  if (typed->type == "captured") return widen<WorkerEvent>(readCaptured(fields));
  if (typed->type == "error") return widen<WorkerEvent>(readError(fields));
  if (typed->type == "devices") return widen<WorkerEvent>(readDevices(fields));
  return unknownType(typed->type, "hello, progress, result, numerics, captured, error, devices");
}

}  // namespace fuseline
