// One thread reads, one runs, a lock keeps lines whole.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/server.h"

#include "core/export/model/weight_map.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"
#include "core/support/version.h"
#include "core/tensor/safetensors.h"
#include "core/worker/protocol.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <istream>
#include <mutex>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Time that a run has to stop after the connection was lost.
constexpr unsigned kPatienceSeconds = 10;

/// Writes whole lines from any thread.
class EventWriter {
 public:
  explicit EventWriter(std::ostream& output) : m_output(output) {}

  void send(const WorkerEvent& event) {
    const std::string text = encode(event);
    const std::lock_guard lock(m_mutex);
    m_output << text << '\n' << std::flush;
  }

 private:
  std::mutex m_mutex;
  std::ostream& m_output;
};

/// A registry that remembers the last opened backend.
class WatchedRegistry final : public BackendRegistry {
 public:
  explicit WatchedRegistry(const BackendRegistry& registry) : m_registry(registry) {}

  std::vector<DeviceStatus> devices() const override { return m_registry.devices(); }
  Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const override {
    Result<std::shared_ptr<Backend>> backend = m_registry.open(deviceId);
    if (backend) m_opened = *backend;
    return backend;
  }
  Capabilities capabilities(std::string_view deviceId) const override { return m_registry.capabilities(deviceId); }

  bool isDeviceLost() const { return m_opened && m_opened->isLost(); }

 private:
  const BackendRegistry& m_registry;
  mutable std::shared_ptr<Backend> m_opened;
};

/// Runs requests one after the other on its own thread.
class RunQueue {
 public:
  RunQueue(EventWriter& writer, const BackendRegistry& registry, const std::function<void()>& onDeviceLost,
           WorkerPlace place)
      : m_writer(writer), m_registry(registry), m_onDeviceLost(onDeviceLost), m_place(place), m_thread([this] {
          serve();
        }) {}

  ~RunQueue() { m_thread.join(); }

  void add(RunRequest request) {
    const std::lock_guard lock(m_mutex);
    m_waiting.push_back({std::move(request), std::stop_source()});
    m_changed.notify_one();
  }

  /// Stops the run of this id between iterations, or before its first one.
  void cancel(int id) {
    const std::lock_guard lock(m_mutex);
    for (Job& job : m_waiting)
      if (job.request.id == id) job.stop.request_stop();
    if (m_runningId == id) m_runningStop.request_stop();
  }

  void cancelAll() {
    const std::lock_guard lock(m_mutex);
    for (Job& job : m_waiting) job.stop.request_stop();
    m_runningStop.request_stop();
  }

  /// No more requests will come.
  void close() {
    const std::lock_guard lock(m_mutex);
    m_isClosed = true;
    m_changed.notify_one();
  }

 private:
  struct Job {
    RunRequest request;
    std::stop_source stop;
  };

  void serve() {
    while (std::optional<Job> job = next()) run(*job);
  }

  std::optional<Job> next() {
    std::unique_lock lock(m_mutex);
    m_runningId.reset();
    m_changed.wait(lock, [this] { return m_isClosed || !m_waiting.empty(); });
    if (m_waiting.empty()) return std::nullopt;
    Job job = std::move(m_waiting.front());
    m_waiting.pop_front();
    m_runningId = job.request.id;
    m_runningStop = job.stop;
    return job;
  }

  void run(const Job& job) {
    const WatchedRegistry registry(m_registry);
    const Result<WorkerEvent> event = answer(job, registry);
    if (event) return m_writer.send(*event);
    m_writer.send(ErrorEvent{job.request.id, event.error(), registry.isDeviceLost()});
    if (m_onDeviceLost && registry.isDeviceLost()) m_onDeviceLost();
  }

  Result<WorkerEvent> answer(const Job& job, const BackendRegistry& registry) {
    try {
      switch (job.request.purpose) {
        case RunPurpose::Times: return measure(job, registry);
        case RunPurpose::Numerics: return numerics(job, registry);
        case RunPurpose::Capture: return capture(job, registry);
      }
      return Error{"The request does not say which kind of run it is."};
    } catch (const std::exception& problem) {
      return Error{fmt::format("The run failed: {}", problem.what()), ErrorKind::RunFailed};
    }
  }

  void report(int id, std::string_view stage, int done, int total) {
    m_writer.send(ProgressEvent{id, std::string(stage), done, total});
  }

  Result<WorkerEvent> measure(const Job& job, const BackendRegistry& registry) {
    const int id = job.request.id;
    const Result<std::unique_ptr<PipelineRun>> run = prepare(job, registry);
    if (!run) return run.error();
    const Result<std::unique_ptr<PipelineRun>> beside = prepareBeside(job, **run, registry);
    if (!beside) return beside.error();
    std::vector<PipelineRun*> runs = {run->get()};
    if (*beside) runs.push_back(beside->get());
    Result<std::vector<RunRecord>> records = PipelineRun::measureTogether(
        runs, [this, id](std::string_view stage, int done, int total) { report(id, stage, done, total); },
        job.stop.get_token());
    if (!records) return records.error();
    ResultEvent event{id, std::move(records->front()), std::nullopt};
    if (*beside) event.beside = std::move(records->back());
    return WorkerEvent(std::move(event));
  }

  Result<WorkerEvent> numerics(const Job& job, const BackendRegistry& registry) {
    const Result<std::unique_ptr<PipelineRun>> run = prepare(job, registry);
    if (!run) return run.error();
    report(job.request.id, "comparing", 0, 0);
    Result<NumericsReport> numerics = (*run)->numerics(job.stop.get_token());
    if (!numerics) return numerics.error();
    return WorkerEvent(NumericsEvent{job.request.id, std::move(*numerics)});
  }

  Result<WorkerEvent> capture(const Job& job, const BackendRegistry& registry) {
    const CaptureOrder& order = job.request.capture;
    const Result<std::unique_ptr<PipelineRun>> run = prepare(job, registry);
    if (!run) return run.error();
    const Result<TensorChoice> choice = chooseTensors((*run)->analysis().graph(), (*run)->capturable(), order.tensors);
    if (!choice) return choice.error();
    if (Result<void> fits = checkCaptureSize(*choice, order.limitBytes); !fits) return fits.error();
    report(job.request.id, "capturing", 0, 0);
    const Result<NamedTensors> tensors = (*run)->capture(*choice, job.stop.get_token());
    if (!tensors) return tensors.error();
    if (Result<void> written = writeSafetensors(order.file, *tensors); !written) return written.error();
    if (m_place == WorkerPlace::There)
      if (Result<void> sent = sendAway(order.file); !sent) return sent.error();
    return WorkerEvent(CapturedEvent{job.request.id, summariesOf(*tensors)});
  }

  /// To the caller, who has another disk; nothing of it stays.
  Result<void> sendAway(const std::string& file) {
    Result<void> sent = sendInChunks(file, file, [this](const FileChunk& chunk) { m_writer.send(chunk); });
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    return sent;
  }

  Result<std::unique_ptr<PipelineRun>> prepare(const Job& job, const BackendRegistry& registry) {
    report(job.request.id, "preparing", 0, 1);
    const LoadedDocument loaded = parseDocument(job.request.pipelineText);
    Result<PipelineRunOptions> options = optionsOf(job.request, loaded.document);
    if (!options) return options.error();
    options->watch.whenRankHangs = [this, id = job.request.id](const Error& error) {
      m_writer.send(ErrorEvent{id, error, true});
      std::_Exit(static_cast<int>(error.kind));
    };
    return PipelineRun::prepare(loaded, job.request.pipelineName, std::move(*options), registry);
  }

  /// nullptr: nothing takes turns with it.
  Result<std::unique_ptr<PipelineRun>> prepareBeside(const Job& job, const PipelineRun& first,
                                                     const BackendRegistry& registry) {
    const RunRequest& request = job.request;
    if (request.besideText.empty()) return std::unique_ptr<PipelineRun>();
    const LoadedDocument loaded = parseDocument(request.besideText);
    Result<PipelineRunOptions> options = optionsOf(request, loaded.document);
    if (!options) return options.error();
    options->heldBytes = first.heldBytes();
    options->takesTensorsThatFit = true;  // they were chosen for the pipeline that it takes turns with
    auto run = PipelineRun::prepare(loaded, request.besideName, std::move(*options), registry);
    if (!run) return Error{fmt::format("{}: {}", request.besideName, run.error().message), run.error().kind};
    return run;
  }

  static Result<PipelineRunOptions> optionsOf(const RunRequest& request, const PipelineDocument& document) {
    if (request.variants.empty())
      return Error{"variants: expected unfused, fused, or both; found none.", ErrorKind::Usage};
    PipelineRunOptions options{
        .settings = request.settings, .variants = request.variants, .switches = request.switches};
    // The message is read in the window, which has no command-line options.
    options.tooLargeAdvice = "Give its symbols smaller values, or choose a device with more memory.";
    if (request.tensorsFile.empty()) return options;
    Result<NamedTensors> tensors = readTensors(document, request.tensorsFile, request.settings.symbols);
    if (!tensors) return tensors.error();
    options.tensors = std::move(*tensors);
    return options;
  }

  EventWriter& m_writer;
  const BackendRegistry& m_registry;
  const std::function<void()>& m_onDeviceLost;
  const WorkerPlace m_place;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<Job> m_waiting;
  std::optional<int> m_runningId;
  std::stop_source m_runningStop;
  bool m_isClosed = false;
  std::thread m_thread;  // last: it uses the members above
};

class Server {
 public:
  Server(std::ostream& output, const BackendRegistry& registry, const std::function<void()>& onDeviceLost,
         WorkerPlace place)
      : m_writer(output), m_registry(registry), m_place(place), m_queue(m_writer, registry, onDeviceLost, place) {}

  void serve(std::istream& input) {
    m_writer.send(HelloEvent{.version = std::string(version())});
    for (std::string text; !m_isDone && std::getline(input, text);)
      if (!text.empty()) answer(text);
    if (m_place == WorkerPlace::There && !m_isDone) {
      m_queue.cancelAll();
      alarm(kPatienceSeconds);
    }
    m_queue.close();
  }

 private:
  void answer(const std::string& text) {
    Result<WorkerRequest> request = decodeRequest(text);
    if (!request) return m_writer.send(ErrorEvent{requestId(text), request.error()});
    std::visit([this](auto& message) { handle(message); }, *request);
  }

  void handle(RunRequest& request) { m_queue.add(std::move(request)); }
  void handle(const CancelRequest& request) { m_queue.cancel(request.id); }
  void handle(const DevicesRequest& request) {
    m_writer.send(DevicesEvent{request.id, devicesToJson(m_registry.devices())});
  }
  void handle(const FileChunk& chunk) {
    const bool isPlain =
        !chunk.name.empty() && !chunk.name.starts_with('.') && chunk.name.find('/') == std::string::npos;
    if (m_place == WorkerPlace::Here || !isPlain)
      return m_writer.send(ErrorEvent{
          0, Error{fmt::format(
                 "file {}: only a worker on another machine accepts files, and the name must not contain a path.",
                 chunk.name)}});
    if (const Result<void> written = writeChunk(chunk, chunk.name); !written)
      m_writer.send(ErrorEvent{0, written.error()});
  }
  void handle(const QuitRequest&) {
    m_queue.cancelAll();
    m_isDone = true;
  }

  EventWriter m_writer;
  const BackendRegistry& m_registry;
  const WorkerPlace m_place;
  bool m_isDone = false;
  RunQueue m_queue;
};

}  // namespace

Json devicesToJson(const std::vector<DeviceStatus>& devices) {
  Json list = Json::array();
  for (const DeviceStatus& device : devices) {
    Json details = Json::object();
    for (const auto& [name, value] : device.info.details) details[name] = value;
    list.push_back({{"id", device.info.id},
                    {"name", device.info.name},
                    {"architecture", device.info.architecture},
                    {"memoryBytes", device.info.memoryBytes},
                    {"canRun", static_cast<bool>(device.canRun)},
                    {"reason", device.canRun.reason()},
                    {"nativeRecipes", device.nativeRecipes ? Json(*device.nativeRecipes) : Json()},
                    {"details", std::move(details)}});
  }
  return list;
}

Json deviceSchema() {
  return schema::object(
      {{"id", schema::text("Id of the device, as for --device.")},
       {"name", schema::text("Name of the GPU product.")},
       {"architecture", schema::text("Instruction set or compute capability.")},
       {"memoryBytes", schema::integer("Memory of the device; 0: unknown.")},
       {"canRun", schema::flag("Whether the device can run now.")},
       {"reason", schema::text("Reason why it cannot run; empty: it can.")},
       {"nativeRecipes", schema::orNull(schema::list(schema::text(
                             "Name of the recipe. Support by compute capability; with --probe by the library.")))},
       {"details", schema::mapOf({{"type", "string"}})}});
}

int serveWorker(std::istream& input, std::ostream& output, const BackendRegistry& registry,
                const std::function<void()>& onDeviceLost, WorkerPlace place) {
  Server(output, registry, onDeviceLost, place).serve(input);
  return 0;
}

}  // namespace fuseline
