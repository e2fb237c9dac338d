// The worker protocol: one JSON object a line. Requests on standard input, events on standard output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "core/profile/numerics.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fuseline {

/// What a run is for. Numerics: what number formats do to its values; nothing is timed.
enum class RunPurpose { Times, Numerics };

/// {"type":"run" or
/// "numerics","id":1,"pipeline":"...","settings":{...},"variants":[...],"without":[...],"with":[...],"tensors":"..."}
struct RunRequest {
  int id = 0;
  std::string pipelineText;
  std::string pipelineName;
  RunSettings settings;
  std::vector<std::string> variants = {"unfused", "fused"};
  RuleSwitches switches;
  /// A safetensors file on the worker's machine with what the run starts from; empty: all is drawn from the seed.
  std::string tensorsFile;
  RunPurpose purpose = RunPurpose::Times;
};
/// {"type":"cancel","id":1}: the run stops between iterations and reports what it has.
struct CancelRequest {
  int id = 0;
};
struct DevicesRequest {
  int id = 0;
};
struct QuitRequest {};
using WorkerRequest = std::variant<RunRequest, CancelRequest, DevicesRequest, QuitRequest>;

/// {"type":"hello","version":"...","protocol":1}
struct HelloEvent {
  std::string version;
  int protocol = 1;
};
/// {"type":"progress","id":1,"stage":"measuring","done":3,"total":20}
struct ProgressEvent {
  int id = 0;
  std::string stage;  // "preparing", "warming up", "measuring", "measuring roofs"
  int done = 0;
  int total = 0;
};
struct ResultEvent {
  int id = 0;
  RunRecord record;
};
/// {"type":"numerics","id":1,"report":{...}}
struct NumericsEvent {
  int id = 0;
  NumericsReport report;
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
using WorkerEvent = std::variant<HelloEvent, ProgressEvent, ResultEvent, NumericsEvent, ErrorEvent, DevicesEvent>;

/// One line without its newline.
std::string encode(const WorkerRequest& request);
std::string encode(const WorkerEvent& event);
/// Errors: a sentence that says what is wrong with the line.
Result<WorkerRequest> decodeRequest(std::string_view line);
Result<WorkerEvent> decodeEvent(std::string_view line);

}  // namespace fuseline
