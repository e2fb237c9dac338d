// RemoteMachine: a connection to another machine on which this very program is ready to run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/remote/bundle.h"
#include "app/remote/remote_script.h"
#include "app/remote/ssh_process.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

namespace fuseline::remote {

struct RemoteOrder {
  SshHost host;
  RemoteMode mode = RemoteMode::Files;
  std::vector<std::string> environment = {};  // NAME=value
  std::vector<std::string> arguments = {};    // of fuseline
};

/// For whoever waits. Both may be called on other threads.
struct RemoteWatcher {
  /// The program is being copied there.
  std::function<void(std::uintmax_t doneBytes, std::uintmax_t totalBytes)> copying;
  /// A line of the other side's standard error, after the program there was started.
  std::function<void(const std::string& line)> said;
};

class RemoteMachine {
 public:
  /// Connects, and copies the program there where it is missing.
  /// Errors (RunFailed): sentences with the reason and the next step. Nothing is left half done on the other machine.
  static Result<std::unique_ptr<RemoteMachine>> open(const RemoteOrder& order, RemoteWatcher watcher,
                                                     std::stop_token cancel);

  SshProcess& ssh() { return *m_ssh; }

  // With RemoteMode::Files, in this order:
  /// Errors: the file cannot be read here; the connection was lost.
  Result<void> sendFile(const std::filesystem::path& source, const std::string& name);
  Result<void> sendText(std::string_view text, const std::string& name);
  /// Runs the program and returns its exit code.
  Result<int> run();
  struct SentFile {
    std::string name;  // "out/stdout"
    std::uintmax_t sizeBytes = 0;
  };
  /// Nothing: that was the last one. Its bytes are to be received before the next one.
  Result<std::optional<SentFile>> nextFile();
  Result<void> receive(const SentFile& file, std::ostream& to);

  /// The connection ended before it should: a sentence with ssh's reason.
  Error lost();

 private:
  explicit RemoteMachine(SshHost host) : m_host(std::move(host)) {}
  Result<void> connect(const RemoteOrder& order, RemoteWatcher watcher, std::stop_token cancel);
  Result<void> copy(const Bundle& bundle, const RemoteWatcher& watcher);
  std::optional<std::string> markedLine();
  Error refused(std::string_view answer);

  SshHost m_host;
  std::stop_token m_cancel;
  std::unique_ptr<SshProcess> m_ssh;
  std::shared_ptr<std::atomic<bool>> m_isReady = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace fuseline::remote
