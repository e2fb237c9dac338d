// Opens the connection, sends the program there, and follows the protocol of the script.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/remote_machine.h"

#include "app/remote/ssh_problem.h"

#include <sys/utsname.h>

#include <charconv>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

constexpr std::size_t kChunkBytes = 1u << 18u;

Error runFailed(std::string message) { return {std::move(message), ErrorKind::RunFailed}; }

/// The next word of a line.
std::string_view takeWord(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::string thisArchitecture() {
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

template <class Number>
Number numberIn(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Result<std::unique_ptr<RemoteMachine>> RemoteMachine::open(const RemoteOrder& order, RemoteWatcher watcher,
                                                           std::stop_token cancel) {
  std::unique_ptr<RemoteMachine> machine(new RemoteMachine(order.host));
  const Result<void> connected = machine->connect(order, std::move(watcher), std::move(cancel));
  if (!connected) return connected.error();
  return machine;
}

Result<void> RemoteMachine::connect(const RemoteOrder& order, RemoteWatcher watcher, std::stop_token cancel) {
  const Result<Bundle> bundle = ownBundle();
  if (!bundle) return bundle.error();
  m_cancel = cancel;
  const auto said = [isReady = m_isReady, said = watcher.said](const std::string& line) {
    if (*isReady && said) said(line);
  };
  Result<std::unique_ptr<SshProcess>> ssh = SshProcess::start(
      m_host, remoteCommand(order.mode, bundle->version, order.environment, order.arguments), said, std::move(cancel));
  if (!ssh) return ssh.error();
  m_ssh = std::move(*ssh);
  std::optional<std::string> answer = markedLine();
  if (!answer) return lost();
  std::string_view rest = *answer;
  takeWord(rest);
  const bool hasBundle = takeWord(rest) == "yes";
  const std::string_view system = takeWord(rest);
  if (system != "Linux" || rest != thisArchitecture())
    return runFailed(
        fmt::format("{}: expected Linux on {}, found {} on {}. Install Fuseline on that machine and run it there.",
                    m_host.text, thisArchitecture(), system, rest));
  if (!hasBundle)
    if (const Result<void> copied = copy(*bundle, watcher); !copied) return copied.error();
  answer = markedLine();
  if (!answer || *answer != "ready") return answer ? refused(*answer) : lost();
  *m_isReady = true;
  m_ssh->setConnected();
  return {};
}

Result<void> RemoteMachine::copy(const Bundle& bundle, const RemoteWatcher& watcher) {
  std::uintmax_t done = 0;
  const std::uintmax_t total = bundle.sizeBytes();
  bool isTaken = m_ssh->write("send\n");
  for (const BundleFile& file : bundle.files) {
    std::ifstream source(file.source, std::ios::binary);
    isTaken = isTaken && m_ssh->write(fmt::format("{} {}\n", file.sizeBytes, file.name));
    std::string chunk(kChunkBytes, '\0');
    for (std::uintmax_t left = file.sizeBytes; isTaken && left > 0;) {
      source.read(chunk.data(), static_cast<std::streamsize>(std::min<std::uintmax_t>(left, kChunkBytes)));
      const auto numRead = static_cast<std::size_t>(source.gcount());
      if (numRead == 0)
        return runFailed(fmt::format("{}: the file changed while it was copied. Start again.", file.source.string()));
      isTaken = m_ssh->write({chunk.data(), numRead});
      left -= numRead;
      done += numRead;
      if (watcher.copying) watcher.copying(done, total);
    }
  }
  m_ssh->write("\n");  // where the other side gave up, its answer says why
  return {};
}

/// Without the mark. Lines without it were printed by start files.
std::optional<std::string> RemoteMachine::markedLine() {
  while (std::optional<std::string> line = m_ssh->readLine())
    if (line->starts_with(kMark)) return line->substr(kMark.size());
  return std::nullopt;
}

Error RemoteMachine::refused(std::string_view answer) {
  std::string_view rest = answer;
  const std::string_view kind = takeWord(rest);
  m_ssh->finish();
  if (kind == "unfit") return runFailed(unfitProblem(m_host.text, rest));
  if (kind == "failed") return runFailed(writingProblem(m_host.text, m_ssh->words()));
  return runFailed(
      fmt::format("{}: unexpected answer \"{}\". Another version of Fuseline may be running there; start again.",
                  m_host.text, answer));
}

Error RemoteMachine::lost() {
  const bool wasReady = *m_isReady;
  if (m_cancel.stop_requested()) return runFailed("The run was cancelled.");
  m_ssh->finish();
  if (!wasReady) return runFailed(connectionProblem(m_host.text, m_ssh->words()));
  const std::string& words = m_ssh->words();
  const std::size_t begin = words.rfind('\n');
  const std::string last = begin == std::string::npos ? words : words.substr(begin + 1);
  return runFailed(
      fmt::format("{}: the connection was lost, and the program there stops. Local files that were not received are "
                  "unchanged. Check the network and start again.{}",
                  m_host.text, last.empty() ? "" : " ssh: " + last));
}

Result<void> RemoteMachine::sendText(std::string_view text, const std::string& name) {
  if (m_ssh->write(fmt::format("{} {}\n", text.size(), name)) && m_ssh->write(text)) return {};
  const std::optional<std::string> answer = markedLine();
  return answer ? refused(*answer) : lost();
}

Result<void> RemoteMachine::sendFile(const std::filesystem::path& source, const std::string& name) {
  std::error_code problem;
  const std::uintmax_t size = std::filesystem::file_size(source, problem);
  std::ifstream file(source, std::ios::binary);
  if (problem || !file) return Error{fmt::format("{}: cannot be read.", source.string())};
  bool isTaken = m_ssh->write(fmt::format("{} {}\n", size, name));
  std::string chunk(kChunkBytes, '\0');
  for (std::uintmax_t left = size; isTaken && left > 0;) {
    file.read(chunk.data(), static_cast<std::streamsize>(std::min<std::uintmax_t>(left, kChunkBytes)));
    if (file.gcount() == 0)
      return Error{fmt::format("{}: the file changed while it was copied. Start again.", source.string())};
    isTaken = m_ssh->write({chunk.data(), static_cast<std::size_t>(file.gcount())});
    left -= static_cast<std::uintmax_t>(file.gcount());
  }
  if (isTaken) return {};
  const std::optional<std::string> answer = markedLine();
  return answer ? refused(*answer) : lost();
}

Result<int> RemoteMachine::run() {
  m_ssh->write("\n");
  std::optional<std::string> answer = markedLine();
  if (!answer) return lost();
  std::string_view rest = *answer;
  if (takeWord(rest) != "exit") return refused(*answer);
  return numberIn<int>(rest);
}

Result<std::optional<RemoteMachine::SentFile>> RemoteMachine::nextFile() {
  const std::optional<std::string> answer = markedLine();
  if (!answer) return lost();
  std::string_view rest = *answer;
  const std::string_view kind = takeWord(rest);
  if (kind == "end") return std::optional<SentFile>();
  if (kind != "file") return refused(*answer);
  const auto size = numberIn<std::uintmax_t>(takeWord(rest));
  return std::optional(SentFile{std::string(rest), size});
}

Result<void> RemoteMachine::receive(const SentFile& file, std::ostream& to) {
  for (std::uintmax_t left = file.sizeBytes; left > 0;) {
    const std::string some = m_ssh->readSome(static_cast<std::size_t>(std::min<std::uintmax_t>(left, kChunkBytes)));
    if (some.empty()) return lost();
    to.write(some.data(), static_cast<std::streamsize>(some.size()));
    left -= some.size();
  }
  return {};
}

}  // namespace fuseline::remote
