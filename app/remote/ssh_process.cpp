// ssh as a child with a socket for its input and output, so that a broken connection is no signal.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/ssh_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

constexpr int kPollMs = 50;
constexpr std::size_t kReadBytes = 1u << 16u;
constexpr std::size_t kKeptWords = 4000;

/// By the search path; empty: there is none.
std::string programNamed(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::string program = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

/// In the child: only calls that are safe after a fork of a program with threads.
[[noreturn]] void becomeSsh(const char* program, char* const* arguments, int stream, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // others may be blocked, and a blocked signal is inherited
  dup2(stream, STDIN_FILENO);
  dup2(stream, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(program, arguments);
  _exit(127);
}

/// Modes of the terminal, which ssh changes while it asks for a password.
std::optional<termios> terminalModes() {
  termios modes{};
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  const bool isKnown = terminal >= 0 && tcgetattr(terminal, &modes) == 0;
  if (terminal >= 0) close(terminal);
  return isKnown ? std::optional(modes) : std::nullopt;
}

void setTerminalModes(const termios& modes) {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) tcsetattr(terminal, TCSANOW, &modes);
  if (terminal >= 0) close(terminal);
}

int exitCodeOf(int status) {
  constexpr int kFailureOfSsh = 255;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailureOfSsh;
}

Error startProblem(std::string_view what) {
  return {fmt::format("ssh cannot be started: {}.", what), ErrorKind::RunFailed};
}

}  // namespace

Result<std::unique_ptr<SshProcess>> SshProcess::start(const SshHost& host, const std::string& command,
                                                      TakeLine takeLine, std::stop_token cancel) {
  const std::string program = programNamed("ssh");
  if (program.empty())
    return Error{"There is no ssh on this machine. Install it (Debian, Ubuntu: sudo apt install openssh-client).",
                 ErrorKind::RunFailed};
  std::vector<std::string> arguments = host.sshArguments();
  arguments.insert(arguments.begin(), program);
  arguments.push_back(command);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> stream{};
  std::array<int, 2> errors{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.data()) != 0) return startProblem("no socket is free");
  if (pipe2(errors.data(), O_CLOEXEC) != 0) {
    for (const int each : stream) close(each);
    return startProblem("no pipe is free");
  }
  const pid_t process = fork();
  if (process == 0) becomeSsh(program.c_str(), pointers.data(), stream[1], errors[1]);
  close(stream[1]);
  close(errors[1]);
  if (process < 0) {
    close(stream[0]);
    close(errors[0]);
    return startProblem("the system starts no more processes");
  }
  return std::unique_ptr<SshProcess>(
      new SshProcess(process, stream[0], errors[0], std::move(takeLine), std::move(cancel)));
}

SshProcess::SshProcess(pid_t process, int stream, int errors, TakeLine takeLine, std::stop_token cancel)
    : m_process(process),
      m_stream(stream),
      m_errors(errors),
      m_takeLine(std::move(takeLine)),
      m_cancel(std::move(cancel)),
      m_terminal(terminalModes()),
      m_errorThread([this](const std::stop_token& ended) { readErrors(ended); }) {}

SshProcess::~SshProcess() {
  if (!hasEnded()) endNow();
  finish();
  close(m_stream);
  close(m_errors);
}

/// Also at a prompt for a password, where it left the terminal without echo.
void SshProcess::endNow() {
  kill(m_process, SIGKILL);
  if (m_terminal && !m_isConnected) setTerminalModes(*m_terminal);
}

/// False: ssh was ended, because nobody waits for the connection any more.
bool SshProcess::await(short events) {
  while (true) {
    if (m_cancel.stop_requested() && !m_isConnected) {
      endNow();
      return false;
    }
    if (m_cancel.stop_requested()) closeInput();
    pollfd waited{.fd = m_stream, .events = events, .revents = 0};
    if (poll(&waited, 1, kPollMs) > 0) return true;
    if (hasEnded()) return poll(&waited, 1, 0) > 0;
    if (m_isInputClosed && events == POLLOUT) return false;
  }
}

bool SshProcess::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!await(POLLOUT) || m_isInputClosed) return false;
    const ssize_t sent = send(m_stream, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void SshProcess::closeInput() {
  if (!m_isInputClosed.exchange(true)) shutdown(m_stream, SHUT_WR);
}

bool SshProcess::fill() {
  if (!await(POLLIN)) return false;
  const std::size_t before = m_buffer.size();
  m_buffer.resize(before + kReadBytes);
  const ssize_t received = recv(m_stream, m_buffer.data() + before, kReadBytes, 0);
  m_buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(received, 0)));
  return received > 0;
}

std::optional<std::string> SshProcess::readLine() {
  std::size_t searched = 0;
  while (true) {
    if (const std::size_t end = m_buffer.find('\n', searched); end != std::string::npos) {
      std::string line = m_buffer.substr(0, end);
      m_buffer.erase(0, end + 1);
      return line;
    }
    searched = m_buffer.size();
    if (!fill()) return std::nullopt;
  }
}

std::string SshProcess::readSome(std::size_t most) {
  if (m_buffer.empty() && !fill()) return {};
  std::string some = m_buffer.substr(0, most);
  m_buffer.erase(0, some.size());
  return some;
}

/// Processes that ssh left behind, such as the master of shared connections, may keep the socket open.
bool SshProcess::hasEnded() {
  const std::lock_guard lock(m_exitMutex);
  int status = 0;
  if (!m_exitCode && waitpid(m_process, &status, WNOHANG) == m_process) m_exitCode = exitCodeOf(status);
  return m_exitCode.has_value();
}

int SshProcess::finish() {
  closeInput();
  while (!hasEnded()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!m_errorThread.joinable()) return *m_exitCode;
  m_errorThread.request_stop();  // a process that ssh left behind may keep the pipe open
  m_errorThread.join();
  return *m_exitCode;
}

void SshProcess::readErrors(const std::stop_token& ended) {
  std::string text;
  std::array<char, 4096> bytes{};
  const auto takeLines = [&] {
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      takeErrorLine(text.substr(0, end));
      text.erase(0, end + 1);
    }
  };
  while (true) {
    pollfd waited{.fd = m_errors, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, kPollMs) <= 0) {
      if (ended.stop_requested()) break;
      continue;
    }
    const ssize_t received = ::read(m_errors, bytes.data(), bytes.size());
    if (received <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(received));
    takeLines();
  }
  if (!text.empty()) takeErrorLine(text);
}

void SshProcess::takeErrorLine(const std::string& line) {
  std::string words = m_words + (m_words.empty() ? "" : "\n") + line;
  while (!words.empty() && words.back() == '\r') words.pop_back();
  m_words = words.size() > kKeptWords ? words.substr(words.size() - kKeptWords) : words;
  m_takeLine(line);
}

}  // namespace fuseline::remote
