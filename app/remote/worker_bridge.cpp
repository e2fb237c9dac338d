// One thread a direction.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/worker_bridge.h"

#include "app/remote/remote_machine.h"
#include "core/worker/protocol.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <variant>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

/// A folder, or the index of one.
bool isOfSeveralFiles(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || path.extension() == ".json";
}

class WorkerBridge {
 public:
  WorkerBridge(std::istream& input, std::ostream& output) : m_input(input), m_output(output) {}

  Result<void> open(const SshHost& host) {
    const auto copying = [this](std::uintmax_t done, std::uintmax_t total) {
      const auto doneMiB = static_cast<int>(done >> 20u);
      if (std::exchange(m_doneMiB, doneMiB) != doneMiB)
        send(ProgressEvent{0, "copying Fuseline there", doneMiB, static_cast<int>(total >> 20u)});
    };
    Result<std::unique_ptr<RemoteMachine>> machine = RemoteMachine::open(
        {.host = host, .mode = RemoteMode::Worker, .arguments = {"worker", "--inline-files"}},
        {.copying = copying, .said = [](const std::string& line) { std::cerr << line << std::endl; }}, {});
    if (!machine) return machine.error();
    m_machine = std::move(*machine);
    return {};
  }

  /// Returns when the connection has ended.
  Error relay() {
    std::thread([this] { passRequests(); }).detach();
    while (const std::optional<std::string> line = m_machine->ssh().readLine()) passEvent(*line);
    return m_machine->lost();
  }

  bool hasQuit() const { return m_hasQuit; }

 private:
  void passRequests() {
    for (std::string line; std::getline(m_input, line);) {
      const Result<WorkerRequest> request = decodeRequest(line);
      if (request && std::holds_alternative<QuitRequest>(*request)) m_hasQuit = true;
      const auto* run = request ? std::get_if<RunRequest>(&*request) : nullptr;
      const bool hasFiles = run && (!run->tensorsFile.empty() || !run->capture.file.empty());
      hasFiles ? passRun(*run) : passLine(line);
    }
    m_hasQuit = true;
    m_machine->ssh().closeInput();
  }

  void passLine(const std::string& line) { m_machine->ssh().write(line + "\n"); }

  void passRun(RunRequest request) {
    if (!request.tensorsFile.empty()) {
      if (isOfSeveralFiles(request.tensorsFile))
        return send(ErrorEvent{request.id, Error{fmt::format("{}: weights in several files cannot be sent to another "
                                                             "machine. Choose one safetensors file.",
                                                             request.tensorsFile)}});
      const std::string name = fmt::format("tensors-{}.safetensors", request.id);
      const Result<void> sent = sendInChunks(
          request.tensorsFile, name, [this](const FileChunk& chunk) { passLine(encode(WorkerRequest(chunk))); });
      if (!sent) return send(ErrorEvent{request.id, sent.error()});
      request.tensorsFile = name;
    }
    if (!request.capture.file.empty()) {
      const std::string name = fmt::format("captured-{}.safetensors", request.id);
      const std::lock_guard lock(m_mutex);
      m_wanted[name] = std::exchange(request.capture.file, name);
    }
    passLine(encode(WorkerRequest(request)));
  }

  void passEvent(const std::string& line) {
    if (line.find(R"("type":"file")") != std::string::npos)
      if (const Result<WorkerEvent> event = decodeEvent(line))
        if (const auto* chunk = std::get_if<FileChunk>(&*event)) return keep(*chunk);
    sendLine(line);
  }

  /// A file that nobody wants is dropped.
  void keep(const FileChunk& chunk) {
    std::string path;
    {
      const std::lock_guard lock(m_mutex);
      if (const auto wanted = m_wanted.find(chunk.name); wanted != m_wanted.end()) path = wanted->second;
    }
    if (path.empty()) return;
    if (const Result<void> written = writeChunk(chunk, path); !written) send(ErrorEvent{0, written.error()});
  }

  void send(const WorkerEvent& event) { sendLine(encode(event)); }

  void sendLine(const std::string& line) {
    const std::lock_guard lock(m_mutex);
    m_output << line << '\n' << std::flush;
  }

  std::istream& m_input;
  std::ostream& m_output;
  std::unique_ptr<RemoteMachine> m_machine;
  std::mutex m_mutex;
  std::map<std::string, std::string> m_wanted;  // files of captures, by their names there
  std::atomic<bool> m_hasQuit = false;
  int m_doneMiB = -1;
};

}  // namespace

Result<int> bridgeWorker(const SshHost& host, std::istream& input, std::ostream& output) {
  auto bridge = std::make_unique<WorkerBridge>(input, output);
  if (const Result<void> opened = bridge->open(host); !opened) return opened.error();
  const Error lost = bridge->relay();
  if (!bridge->hasQuit()) std::cerr << lost.message << std::endl;
  output << std::flush;
  std::_Exit(bridge->hasQuit() ? 0 : static_cast<int>(ErrorKind::RunFailed));
}

}  // namespace fuseline::remote
