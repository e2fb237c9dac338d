// fork and exec, socket pairs, and a loop over the signals of children.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/supervisor.h"

#include "app/ranks/launch_place.h"
#include "app/ranks/stopped_ranks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

extern char** environ;

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLastWords = std::chrono::seconds(3);    // of the ranks that notice
constexpr auto kMostStopped = std::chrono::seconds(5);  // Ctrl-Z stops all ranks, and this process with them

Error systemError(const char* call) {
  return {fmt::format("{}: {}.", call, std::strerror(errno)), ErrorKind::RunFailed};
}

/// Connections of rank 0 with each other rank.
class Connections {
 public:
  static Result<Connections> create(int ranks) {
    Connections connections;
    for (int rank = 1; rank < ranks; ++rank) {
      std::array<int, 2> pair{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return systemError("socketpair");
      connections.m_rank0.push_back(pair[0]);
      connections.m_others.push_back(pair[1]);
    }
    return connections;
  }
  Connections(Connections&& other) noexcept = default;
  Connections& operator=(Connections&&) = delete;
  ~Connections() {
    for (const std::vector<int>* ends : {&m_rank0, &m_others})
      for (const int descriptor : *ends) close(descriptor);
  }

  std::vector<int> of(int rank) const {
    return rank == 0 ? m_rank0 : std::vector{m_others[static_cast<std::size_t>(rank) - 1]};
  }

 private:
  Connections() = default;
  std::vector<int> m_rank0;
  std::vector<int> m_others;
};

struct ChildRank {
  pid_t process = 0;
  std::optional<int> status;  // as waitpid() gives it
  std::optional<Clock::time_point> stoppedSince;

  bool hasFailed() const { return status && (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0); }
  int exitCode() const { return WIFEXITED(*status) ? WEXITSTATUS(*status) : static_cast<int>(ErrorKind::RunFailed); }
};

/// All that a child needs after fork(), when it may not allocate.
struct ChildStart {
  std::vector<std::string> words;
  std::vector<std::string> variables;
  std::vector<int> sockets;
  sigset_t signals{};
  pid_t parent = 0;
  bool hasInput = false;

  static std::vector<char*> pointersTo(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }
};

/// A shell starts its background jobs without SIGINT, which a rank would then ignore until it watches for it.
void allowRequests() {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
}

[[noreturn]] void becomeRank(const ChildStart& start, char* const* words, char* const* variables) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(static_cast<int>(ErrorKind::RunFailed));  // it has ended meanwhile
  if (!start.hasInput) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  for (const int socket : start.sockets) fcntl(socket, F_SETFD, 0);
  allowRequests();
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  execve("/proc/self/exe", words, variables);
  _exit(static_cast<int>(ErrorKind::RunFailed));
}

/// Signals of children and of people, which are waited for.
class WatchedSignals {
 public:
  WatchedSignals() {
    sigemptyset(&m_watched);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&m_watched, signal);
    pthread_sigmask(SIG_BLOCK, &m_watched, &m_previous);
  }
  ~WatchedSignals() { pthread_sigmask(SIG_SETMASK, &m_previous, nullptr); }
  WatchedSignals(const WatchedSignals&) = delete;
  WatchedSignals& operator=(const WatchedSignals&) = delete;

  const sigset_t& previous() const { return m_previous; }

  /// A signal of a person, if one comes soon.
  std::optional<int> next() const {
    constexpr timespec kPoll{.tv_sec = 0, .tv_nsec = 100'000'000};
    const int signal = sigtimedwait(&m_watched, nullptr, &kPoll);
    return signal > 0 && signal != SIGCHLD ? std::optional(signal) : std::nullopt;
  }

 private:
  sigset_t m_watched{};
  sigset_t m_previous{};
};

void sayCancelledEarly(std::ostream& err) {
  err << "fuseline: The run was cancelled before its first round; nothing was written." << std::endl;
}

class Supervisor {
 public:
  Supervisor(int ranks, std::ostream& err) : m_err(err), m_children(static_cast<std::size_t>(ranks)) {}
  ~Supervisor() {
    kill(SIGKILL);
    for (ChildRank& child : m_children)
      if (child.process > 0 && !child.status) waitpid(child.process, nullptr, 0);
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<void> start() {
    Result<Connections> connections = Connections::create(size());
    if (!connections) return connections.error();
    for (int rank = 0; rank < size(); ++rank)
      if (Result<void> started = startRank(rank, connections->of(rank)); !started) return started;
    return {};
  }

  int wait() {
    while (std::ranges::any_of(m_children, [](const ChildRank& child) { return !child.status; })) {
      passSignalOn();
      lookAtChildren();
      endStopped();
      if (m_firstFailed && Clock::now() - m_failedAt > kLastWords) kill(SIGKILL);
    }
    return exitCode();
  }

 private:
  int size() const { return static_cast<int>(m_children.size()); }

  Result<void> startRank(int rank, const std::vector<int>& sockets) {
    ChildStart start{.words = ownArguments(), .sockets = sockets, .signals = m_signals.previous(), .parent = getpid()};
    start.hasInput = rank == 0;
    for (char** variable = environ; *variable; ++variable) start.variables.emplace_back(*variable);
    start.variables.push_back(fmt::format("{}={}", kRankVariable, rank));
    start.variables.push_back(fmt::format("{}={}", kRanksVariable, size()));
    start.variables.push_back(fmt::format("{}={}", kSocketsVariable, fmt::join(sockets, ",")));
    const std::vector<char*> words = ChildStart::pointersTo(start.words);
    const std::vector<char*> variables = ChildStart::pointersTo(start.variables);
    const pid_t process = fork();
    if (process < 0) return systemError("fork");
    if (process == 0) becomeRank(start, words.data(), variables.data());
    m_children[static_cast<std::size_t>(rank)].process = process;
    return {};
  }

  /// Waits for a signal, but not for long.
  void passSignalOn() {
    const std::optional<int> signal = m_signals.next();
    if (!signal) return;
    m_passedOn = *signal;
    kill(*signal);
  }

  void lookAtChildren() {
    for (ChildRank& child : m_children) {
      int status = 0;
      if (child.status || waitpid(child.process, &status, WNOHANG | WUNTRACED | WCONTINUED) <= 0) continue;
      if (WIFSTOPPED(status)) {
        child.stoppedSince = Clock::now();
      } else if (WIFCONTINUED(status)) {
        child.stoppedSince.reset();
      } else {
        child.status = status;
        if (child.hasFailed()) noteFailure(child);
      }
    }
  }

  void noteFailure(const ChildRank& child) {
    if (m_firstFailed) return;
    m_firstFailed = &child;
    m_failedAt = Clock::now();
    if (!WIFSIGNALED(*child.status)) return;  // it has spoken itself
    const int signal = WTERMSIG(*child.status);
    if (signal == SIGPIPE) return;                              // the reader of the output has seen enough
    if (signal == m_passedOn) return sayCancelledEarly(m_err);  // ranks that run end by themselves
    m_err << fmt::format("fuseline: {} was killed by signal {} ({}); this ends the run.", describe(child), signal,
                         strsignal(signal))
          << std::endl;
  }

  void endStopped() {
    for (ChildRank& child : m_children) {
      if (child.status || !child.stoppedSince || Clock::now() - *child.stoppedSince < kMostStopped) continue;
      m_err << fmt::format("fuseline: {} has been stopped for {} s while the other ranks wait for it, so it is killed.",
                           describe(child), kMostStopped.count())
            << std::endl;
      child.stoppedSince.reset();
      ::kill(child.process, SIGKILL);
    }
  }

  std::string describe(const ChildRank& child) const {
    return fmt::format("rank {} of {} (process {})", &child - m_children.data(), size(), child.process);
  }

  void kill(int signal) {
    for (const ChildRank& child : m_children)
      if (child.process > 0 && !child.status) ::kill(child.process, signal);
  }

  int exitCode() const {
    if (m_children.front().hasFailed()) return m_children.front().exitCode();
    return m_firstFailed ? m_firstFailed->exitCode() : 0;
  }

  std::ostream& m_err;
  std::vector<ChildRank> m_children;  // by rank
  WatchedSignals m_signals;
  int m_passedOn = 0;
  const ChildRank* m_firstFailed = nullptr;
  Clock::time_point m_failedAt;
};

constexpr int kNotStarted = 127;  // as shells say it

/// Ctrl-C in a terminal reaches the group of its processes: mpirun has one of its own, and cannot read there.
[[noreturn]] void becomeMpirun(const sigset_t& signals, pid_t parent, char* const* words) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(static_cast<int>(ErrorKind::RunFailed));
  const int nothing = isatty(STDIN_FILENO) != 0 ? open("/dev/null", O_RDONLY) : -1;
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  allowRequests();
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(words[0], words);
  _exit(kNotStarted);
}

/// mpirun 4.1 may wait for a lock for ever when a rank was killed while it started.
class WatchOverEnd {
 public:
  /// Call it now and then. True: its ranks have ended long ago.
  bool isLate(pid_t mpirun) {
    constexpr auto kMostSeconds = std::chrono::seconds(5);
    if (!runningChildren(mpirun).empty()) m_lastSeen = Clock::now();
    return m_lastSeen && Clock::now() - *m_lastSeen > kMostSeconds;
  }

 private:
  std::optional<Clock::time_point> m_lastSeen;  // of a rank
};

/// mpirun kills its ranks a second after SIGINT and SIGTERM, but passes SIGUSR1 on to them: they cancel their run.
/// While ranks start, and at another request, mpirun itself is ended. Returns its status, as waitpid() gives it.
int waitForMpirun(pid_t mpirun, const WatchedSignals& signals, bool& wasCancelled, std::ostream& err) {
  constexpr auto kSameRequest = std::chrono::milliseconds(500);  // `timeout` sends its signal twice
  constexpr auto kStart = std::chrono::seconds(1);
  const Clock::time_point begin = Clock::now();
  Clock::time_point first;
  WatchOverEnd watch;
  int status = 0;
  while (waitpid(mpirun, &status, WNOHANG) == 0) {
    const std::optional<int> signal = signals.next();
    if (watch.isLate(mpirun)) {
      err << "fuseline: mpirun did not end after its ranks had ended, so it was killed." << std::endl;
      ::kill(mpirun, SIGKILL);
      waitpid(mpirun, &status, 0);
      break;
    }
    if (!signal || (wasCancelled && Clock::now() - first < kSameRequest)) continue;
    ::kill(mpirun, wasCancelled || Clock::now() - begin < kStart ? SIGTERM : SIGUSR1);
    if (!wasCancelled) first = Clock::now();
    wasCancelled = true;
  }
  return status;
}

}  // namespace

std::vector<std::string> ownArguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

Result<int> superviseMpirun(std::vector<std::string> words, std::ostream& err) {
  const WatchedSignals signals;
  const std::vector<char*> pointers = ChildStart::pointersTo(words);
  const pid_t parent = getpid();
  const pid_t mpirun = fork();
  if (mpirun < 0) return systemError("fork");
  if (mpirun == 0) becomeMpirun(signals.previous(), parent, pointers.data());
  bool wasCancelled = false;
  const int status = waitForMpirun(mpirun, signals, wasCancelled, err);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ErrorKind::RunFailed);
  if (code == kNotStarted) return Error{"mpirun does not start. Install openmpi-bin.", ErrorKind::NoDevice};
  const bool hasSpoken = code == 0 || code == static_cast<int>(ErrorKind::RunFailed);  // rank 0
  if (!wasCancelled || (hasSpoken && WIFEXITED(status))) return code;
  sayCancelledEarly(err);
  return static_cast<int>(ErrorKind::RunFailed);
}

Result<int> superviseRanks(int ranks, std::ostream& err) {
  Supervisor supervisor(ranks, err);
  if (Result<void> started = supervisor.start(); !started) return started.error();
  return supervisor.wait();
}

}  // namespace fuseline
