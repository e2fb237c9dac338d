// A running ssh: bytes to the other machine, lines and bytes from it, and its words on standard error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/remote/ssh_host.h"

#include <sys/types.h>
#include <termios.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace fuseline::remote {

/// Ends ssh when it is destroyed, and with it the connection; what runs there ends when its input ends.
class SshProcess {
 public:
  /// Takes lines of standard error, on another thread.
  using TakeLine = std::function<void(const std::string&)>;

  /// command: for the login shell of the other machine. cancel: a request ends the input of the other side, or before
  /// isConnected() the whole process.
  /// Errors (RunFailed): there is no ssh here, or it does not start.
  static Result<std::unique_ptr<SshProcess>> start(const SshHost& host, const std::string& command, TakeLine takeLine,
                                                   std::stop_token cancel);
  ~SshProcess();
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;

  /// From then on a cancellation is a matter of the program on the other side.
  void setConnected() { m_isConnected = true; }
  /// False: the other side takes no more.
  bool write(std::string_view bytes);
  void closeInput();
  /// Without its newline. Nothing: the connection has ended.
  std::optional<std::string> readLine();
  /// Between one byte and `most`; empty: the connection has ended.
  std::string readSome(std::size_t most);
  /// Waits for the end. Returns ssh's exit code; 255 is a failure of ssh itself.
  int finish();
  /// The last lines of standard error; complete after finish().
  const std::string& words() const { return m_words; }

 private:
  SshProcess(pid_t process, int stream, int errors, TakeLine takeLine, std::stop_token cancel);
  void endNow();
  bool hasEnded();
  bool fill();
  bool await(short events);
  void readErrors(const std::stop_token& ended);
  void takeErrorLine(const std::string& line);

  pid_t m_process;
  int m_stream;  // a socket: standard input and output of ssh
  int m_errors;
  TakeLine m_takeLine;
  std::stop_token m_cancel;
  std::optional<termios> m_terminal;
  std::string m_buffer;
  std::string m_words;
  std::mutex m_exitMutex;
  std::optional<int> m_exitCode;
  bool m_isConnected = false;
  std::atomic<bool> m_isInputClosed = false;  // one thread may write while another one reads
  std::jthread m_errorThread;
};

}  // namespace fuseline::remote
