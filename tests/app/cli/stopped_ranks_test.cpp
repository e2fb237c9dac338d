// Stopped ranks among the children of a process: real children with the variables of a launcher, a clock of its own.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/stopped_ranks.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using std::chrono::milliseconds;
using Clock = StoppedRanks::Clock;

constexpr auto kLimit = milliseconds(2000);

/// A child with the variables of torchrun; it ends with this object.
class Child {
 public:
  Child(int rank, const std::string& port) : m_process(fork()) {
    if (m_process == 0) start(rank, port);
    waitUntilStarted();
  }
  ~Child() {
    ::kill(m_process, SIGKILL);
    waitpid(m_process, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return m_process; }
  void stop() const {
    ::kill(m_process, SIGSTOP);
    waitpid(m_process, nullptr, WUNTRACED);
  }
  void goOn() const {
    ::kill(m_process, SIGCONT);
    waitpid(m_process, nullptr, WCONTINUED);
  }

 private:
  [[noreturn]] static void start(int rank, const std::string& port) {
    const std::array variables = {"RANK=" + std::to_string(rank), std::string("WORLD_SIZE=2"),
                                  std::string("MASTER_ADDR=127.0.0.1"), "MASTER_PORT=" + port};
    std::vector<char*> environment;
    for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    std::array<char*, 3> arguments = {const_cast<char*>("sleep"), const_cast<char*>("600"), nullptr};
    execve("/bin/sleep", arguments.data(), environment.data());
    _exit(127);
  }

  void waitUntilStarted() const {
    std::array<char, 64> name{};
    const std::string link = "/proc/" + std::to_string(m_process) + "/exe";
    const auto isSleep = [&] {
      const ssize_t length = readlink(link.c_str(), name.data(), name.size());
      return length > 0 &&
             std::string(name.data(), static_cast<std::size_t>(length)).find("test_") == std::string::npos;
    };
    while (!isSleep()) usleep(1000);
  }

  pid_t m_process;
};

/// As a rank with this port sees it.
StoppedRanks ranksOf(const std::string& port) {
  const LaunchPlace place{.launcher = "torchrun",
                          .transport = RankTransport::Sockets,
                          .rank = 0,
                          .size = 2,
                          .localSize = 2,
                          .meeting = {.host = "127.0.0.1", .firstPort = std::stoi(port) + 1, .token = "  " + port}};
  return StoppedRanks(getpid(), kLimit, place);
}

/// Calls from `begin` on, four a second, for this long.
std::optional<LocalRank> findFor(StoppedRanks& ranks, Clock::time_point begin, milliseconds duration) {
  for (milliseconds passed(0); passed <= duration; passed += milliseconds(250))
    if (std::optional<LocalRank> found = ranks.find(begin + passed)) return found;
  return std::nullopt;
}

TEST(StoppedRanks, AreFoundAfterTheLimit) {
  const Child running(0, "3000");
  const Child stopped(1, "3000");
  StoppedRanks ranks = ranksOf("3000");
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(findFor(ranks, begin, kLimit));
  stopped.stop();
  EXPECT_FALSE(findFor(ranks, begin + kLimit, kLimit));
  const std::optional<LocalRank> found = ranks.find(begin + 2 * kLimit + milliseconds(250));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->place.rank, 1);
  EXPECT_EQ(found->process, stopped.process());
  EXPECT_EQ(ranks.lowestRunning(), 0);
}

TEST(StoppedRanks, ThatGoOnCountFromTheNextStop) {
  const Child rank(1, "3000");
  StoppedRanks ranks = ranksOf("3000");
  const Clock::time_point begin = Clock::now();
  rank.stop();
  EXPECT_FALSE(findFor(ranks, begin, milliseconds(1500)));
  rank.goOn();
  EXPECT_FALSE(ranks.find(begin + milliseconds(1750)));
  rank.stop();
  EXPECT_FALSE(findFor(ranks, begin + milliseconds(2000), kLimit));
  EXPECT_TRUE(ranks.find(begin + milliseconds(4250)));
}

TEST(StoppedRanks, StoppedTogetherWithTheirWatchCountAnew) {
  const Child rank(1, "3000");
  StoppedRanks ranks = ranksOf("3000");
  const Clock::time_point begin = Clock::now();
  rank.stop();
  EXPECT_FALSE(ranks.find(begin));
  const Clock::time_point later = begin + std::chrono::hours(1);
  EXPECT_FALSE(findFor(ranks, later, kLimit));
  EXPECT_TRUE(ranks.find(later + kLimit + milliseconds(250)));
}

TEST(StoppedRanks, OfAnotherJobAreNotFound) {
  const Child own(1, "3000");
  const Child other(0, "4000");
  StoppedRanks ranks = ranksOf("3000");
  other.stop();
  EXPECT_FALSE(findFor(ranks, Clock::now(), 3 * kLimit));
  EXPECT_EQ(ranks.lowestRunning(), 1);
}

}  // namespace
}  // namespace fuseline
