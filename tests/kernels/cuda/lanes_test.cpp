// Assignment of lanes; and lanes are joined even after failures.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream/lanes.h"

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

Stream handle(std::uintptr_t number) { return reinterpret_cast<Stream>(number); }
const Stream kOwn = handle(64);

/// Three of them, with a record of the calls.
class NotedLanes final : public Lanes {
 public:
  std::vector<std::string> calls;
  std::span<const Stream> streams() const override { return m_streams; }
  void fork(std::size_t count) override { calls.push_back(fmt::format("fork {}", count)); }
  void join(std::size_t count) override { calls.push_back(fmt::format("join {}", count)); }

 private:
  std::array<Stream, 3> m_streams = {handle(1), handle(2), handle(3)};
};

struct Launched {
  Stream stream;
  std::ptrdiff_t offset;
  bool operator==(const Launched&) const = default;
};

using Work = std::vector<std::int64_t>;

std::vector<Launched> run(const LaneTurns& turns, const Work& work) {
  std::vector<std::byte> workspace(turns.workspaceBytes());
  std::vector<Launched> launched;
  turns.run(work, workspace.data(), [&](std::size_t, const Lane& lane) {
    launched.push_back({lane.stream, lane.workspace - workspace.data()});
  });
  return launched;
}

TEST(LaneTurns, GiveEveryLaneAPartOfTheWorkspace) {
  NotedLanes lanes;
  const LaneTurns turns(&lanes, kOwn, 4, 300);
  EXPECT_EQ(turns.workspaceBytes(), 3U * 512U);  // parts begin at multiples of 256
  const std::vector<Launched> expected = {{handle(1), 0}, {handle(2), 512}, {handle(3), 1024}, {handle(1), 0}};
  EXPECT_EQ(run(turns, {5, 5, 5, 5}), expected);
  EXPECT_EQ(lanes.calls, (std::vector<std::string>{"fork 3", "join 3"}));
}

/// Empty items use no lane.
TEST(LaneTurns, GiveTheNextItemToTheLaneWithTheLeastToDo) {
  NotedLanes lanes;
  const LaneTurns turns(&lanes, kOwn, 8, 1);
  std::vector<Stream> streams;
  for (const Launched& launched : run(turns, {9, 0, 2, 0, 3, 1, 2, 9})) streams.push_back(launched.stream);
  const std::vector<Stream> expected = {handle(1), handle(2), handle(2), handle(3),
                                        handle(3), handle(2), handle(2), handle(3)};
  EXPECT_EQ(streams, expected);
}

TEST(LaneTurns, TakeNoMoreLanesThanThereAreItems) {
  NotedLanes lanes;
  const LaneTurns turns(&lanes, kOwn, 2, 1);
  EXPECT_EQ(turns.workspaceBytes(), 512U);
  run(turns, {5, 5});
  EXPECT_EQ(lanes.calls, (std::vector<std::string>{"fork 2", "join 2"}));
}

TEST(LaneTurns, StayOnTheBackendsStreamWhereThereIsNothingToShare) {
  NotedLanes lanes;
  EXPECT_EQ(run(LaneTurns(&lanes, kOwn, 1, 8), {5}), (std::vector<Launched>{{kOwn, 0}}));
  EXPECT_TRUE(lanes.calls.empty());
  EXPECT_EQ(run(LaneTurns(nullptr, kOwn, 2, 8), {5, 5}), (std::vector<Launched>{{kOwn, 0}, {kOwn, 0}}));
}

TEST(LaneTurns, JoinWhatWasLaunchedBeforeAFailure) {
  NotedLanes lanes;
  const auto refuse = [](std::size_t item, const Lane&) {
    if (item == 1) throw std::runtime_error("refused");
  };
  EXPECT_THROW(LaneTurns(&lanes, kOwn, 3, 0).run(Work{1, 1, 1}, nullptr, refuse), std::runtime_error);
  EXPECT_EQ(lanes.calls, (std::vector<std::string>{"fork 3", "join 3"}));
}

}  // namespace
}  // namespace fuseline::cuda
