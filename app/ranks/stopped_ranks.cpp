// Reads the states and the variables of processes from /proc.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/stopped_ranks.h"

#include "app/ranks/blocked_signals.h"
#include "core/support/result.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr auto kWatchPoll = std::chrono::milliseconds(250);
constexpr auto kWatchLimit = std::chrono::seconds(2);
constexpr auto kLongestGap = std::chrono::seconds(1);  // between calls, unless this process was stopped, too

/// 'R', 'S', 'T' (stopped by a signal), 't' (by a debugger), 'Z' ...; '\0': there is no such process.
char stateOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name = text.rfind(')');  // may contain anything
  return name != std::string::npos && name + 2 < text.size() ? text[name + 2] : '\0';
}

bool isStopped(pid_t process) { return stateOf(process) == 'T'; }

/// Nothing: it is none.
std::optional<LocalRank> rankOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  std::map<std::string, std::string> variables;
  for (std::string entry; std::getline(file, entry, '\0');) {
    const std::size_t end = std::min(entry.find('='), entry.size());
    variables.emplace(entry.substr(0, end), entry.substr(std::min(end + 1, entry.size())));
  }
  const Result<std::optional<LaunchPlace>> place = launchPlace([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  if (!place || !*place) return std::nullopt;
  return LocalRank{.place = **place, .process = process};
}

bool areOfOneJob(LaunchPlace place, const LaunchPlace& other) {
  place.rank = other.rank;
  return place == other;
}

/// Others wait until one has said it: launchers end all ranks when the first one fails.
[[noreturn]] void endFor(const LocalRank& stopped, bool speaks) {
  if (speaks)
    fmt::print(stderr,
               "fuseline: rank {} of {} (process {}) has been stopped for {} s while the other ranks wait for it; this "
               "ends the run.\n",
               stopped.place.rank, stopped.place.size, stopped.process, kWatchLimit.count());
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::_Exit(static_cast<int>(ErrorKind::RunFailed));
}

void watch(const std::stop_token& over) {
  const std::optional<LocalRank> own = rankOf(getpid());
  if (!own) return;
  StoppedRanks ranks(getppid(), kWatchLimit, own->place);
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, over, kWatchPoll, [&] { return over.stop_requested(); }))
    if (const std::optional<LocalRank> stopped = ranks.find())
      endFor(*stopped, ranks.lowestRunning() == own->place.rank);
}

}  // namespace

std::vector<pid_t> runningChildren(pid_t parent) {
  std::vector<pid_t> running;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", parent), ignored)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;)
      if (const char state = stateOf(child); state != '\0' && state != 'Z') running.push_back(child);
  }
  return running;
}

std::optional<LocalRank> StoppedRanks::rankOfJob(pid_t process) const {
  std::optional<LocalRank> rank = rankOf(process);
  return rank && areOfOneJob(rank->place, m_job) ? rank : std::nullopt;
}

std::optional<LocalRank> StoppedRanks::find(Clock::time_point now) {
  if (now - m_lastCall > kLongestGap) m_since.clear();
  m_lastCall = now;
  std::map<pid_t, Clock::time_point> stopped;
  for (const pid_t child : runningChildren(m_parent))
    if (isStopped(child)) stopped.emplace(child, m_since.contains(child) ? m_since[child] : now);
  m_since = std::move(stopped);
  for (const auto& [child, since] : m_since)
    if (now - since > m_limit)
      if (std::optional<LocalRank> rank = rankOfJob(child)) return rank;
  return std::nullopt;
}

int StoppedRanks::lowestRunning() const {
  int lowest = -1;
  for (const pid_t child : runningChildren(m_parent)) {
    const std::optional<LocalRank> rank = isStopped(child) ? std::nullopt : rankOfJob(child);
    if (rank && (lowest < 0 || rank->place.rank < lowest)) lowest = rank->place.rank;
  }
  return lowest;
}

StoppedRanksWatch::StoppedRanksWatch() {
  const BlockedSignals blocked;
  m_thread = std::jthread([](const std::stop_token& over) { watch(over); });
}

}  // namespace fuseline
