// The worker protocol: one JSON object a line. Requests on standard input, events on standard output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "core/profile/numerics.h"
#include "core/profile/run_record.h"
#include "core/profile/tensor_statistics.h"
#include "core/support/result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fuseline {

/// Purpose of a run. Numerics: effects of number formats on its values. Capture: some of its tensors. Neither measures
/// times.
enum class RunPurpose { Times, Numerics, Capture };

/// {"tensors":["act:y"],"file":"...","limitBytes":268435456}
struct CaptureOrder {
  std::vector<std::string> tensors;  // or ops, for all of theirs
  std::string file;                  // a safetensors file on the worker's machine, for the tensors
  std::int64_t limitBytes = 0;       // the most that they may take
};

/// {"type":"run", "numerics" or "capture","id":1,"pipeline":"...","settings":{...},"variants":[...],"without":[...],
/// "with":[...],"tensors":"...","capture":{...},"baseline":"...","baselineName":"..."}
struct RunRequest {
  int id = 0;
  std::string pipelineText;
  std::string pipelineName;
  RunSpec settings;
  std::vector<std::string> variants = {"unfused", "fused"};
  RuleSwitches switches;
  /// A safetensors file on the worker's machine with initial tensors; empty: all are drawn from the seed.
  std::string tensorsFile;
  RunPurpose purpose = RunPurpose::Times;
  /// A pipeline that is interleaved with it, under the same settings; empty: none. Only for times.
  std::string besideText;
  std::string besideName;
  /// Tensors of the last variant. Only to capture.
  CaptureOrder capture;
};
/// {"type":"cancel","id":1}: the run stops between iterations and reports the results so far.
struct CancelRequest {
  int id = 0;
};
struct DevicesRequest {
  int id = 0;
};
struct QuitRequest {};
/// {"type":"file","name":"captured.safetensors","offset":0,"data":"..."}: a part of a file that one side has and the
/// other needs. In order; offset 0 begins the file anew. Only with a worker that has no disk in common with its caller.
struct FileChunk {
  std::string name;  // no path
  std::int64_t offset = 0;
  std::string data;  // base64
};
using WorkerRequest = std::variant<RunRequest, CancelRequest, DevicesRequest, QuitRequest, FileChunk>;

/// Sends a file in parts. Errors: it cannot be read.
Result<void> sendInChunks(const std::string& path, const std::string& name,
                          const std::function<void(const FileChunk&)>& send);
/// Writes a part to the file. Errors: no base64, a gap, a file that cannot be written.
Result<void> writeChunk(const FileChunk& chunk, const std::string& path);

/// {"type":"hello","version":"...","protocol":1}
struct HelloEvent {
  std::string version;
  int protocol = 1;
};
/// {"type":"progress","id":1,"stage":"measuring","done":3,"total":20}
struct ProgressEvent {
  int id = 0;
  std::string stage;  // "preparing", "warming up", "measuring", "measuring peaks", "comparing", "capturing"
  int done = 0;
  int total = 0;
};
/// {"type":"result","id":1,"record":{...},"baseline":{...}}
struct ResultEvent {
  int id = 0;
  RunRecord record;
  std::optional<RunRecord> beside;  // of the pipeline that was interleaved with it; nothing: there was none
};
/// {"type":"numerics","id":1,"report":{...}}
struct NumericsEvent {
  int id = 0;
  NumericsReport report;
};
/// {"type":"captured","id":1,"tensors":[{...}]}: they are in the file that was ordered.
struct CapturedEvent {
  int id = 0;
  std::vector<TensorSummary> tensors;
};
struct ErrorEvent {
  int id = 0;
  Error error;
  bool isDeviceLost = false;  // it refuses everything from now on
};
struct DevicesEvent {
  int id = 0;
  Json devices;
};
using WorkerEvent = std::variant<HelloEvent, ProgressEvent, ResultEvent, NumericsEvent, CapturedEvent, ErrorEvent,
                                 DevicesEvent, FileChunk>;

/// One line without its newline.
std::string encode(const WorkerRequest& request);
std::string encode(const WorkerEvent& event);
/// Errors: a message about the problem in the line.
Result<WorkerRequest> decodeRequest(std::string_view line);
/// Schema of one line of the worker's output.
Json workerEventSchema();
/// The id of a line that may not be a valid request, for the answer; 0: it has none.
int requestId(std::string_view line);
Result<WorkerEvent> decodeEvent(std::string_view line);

}  // namespace fuseline
