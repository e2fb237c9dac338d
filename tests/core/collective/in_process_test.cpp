// Collectives of ranks that are threads: every dtype, size and number of ranks against plain loops.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/in_process.h"

#include "core/collective/ordered_reduction.h"
#include "core/tensor/random_tensor.h"
#include "core/tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

constexpr DType kDTypes[] = {DType::F32, DType::BF16, DType::F16};
constexpr std::int64_t kCounts[] = {0, 1, 3, 64, 5000};

/// Runs `work` as every rank. Returns the message of each rank; empty: it did not throw.
std::vector<std::string> onRanks(int ranks, const std::function<void(Communicator&)>& work) {
  std::vector<std::unique_ptr<Communicator>> group = makeInProcessGroup(ranks);
  std::vector<std::string> messages(group.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(*group[rank]);
        } catch (const CommunicationError& error) {
          messages[rank] = error.what();
        }
      });
  }
  return messages;
}

Tensor contribution(int rank, DType dtype, std::int64_t count) {
  return randomNormal({.dtype = dtype, .shape = {count}}, 11, fmt::format("rank{}", rank));
}

/// The defined sum: float32, in rank order, one rounding.
Tensor orderedSum(DType dtype, std::int64_t first, std::int64_t count, std::int64_t whole, int ranks) {
  std::vector<float> sums(static_cast<std::size_t>(count));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<double> values = contribution(rank, dtype, whole).toDoubles();
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += static_cast<float>(values[static_cast<std::size_t>(first) + i]);
  }
  const std::vector<double> rounded(sums.begin(), sums.end());
  return Tensor::fromDoubles({.dtype = dtype, .shape = {count}}, rounded);
}

using Given = std::tuple<int, DType, std::int64_t>;

class InProcess : public testing::TestWithParam<Given> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::int64_t count() const { return std::get<2>(GetParam()); }

  /// Results of every rank.
  std::vector<Tensor> received(CollectiveKind kind, std::int64_t contributed, std::int64_t count,
                               std::int64_t received) const {
    std::vector<Tensor> results(static_cast<std::size_t>(ranks()));
    const auto messages = onRanks(ranks(), [&](Communicator& communicator) {
      const Tensor from = contribution(communicator.rank(), dtype(), contributed);
      Tensor& to = results[static_cast<std::size_t>(communicator.rank())];
      to = Tensor::zeros({.dtype = dtype(), .shape = {received}});
      const CollectivePart part{dtype(), count, from.data.data(), to.data.data()};
      communicator.run({.kind = kind, .name = "test", .parts = std::span(&part, 1)});
    });
    for (const std::string& message : messages) EXPECT_EQ(message, "");
    return results;
  }
};

TEST_P(InProcess, AllGatherConcatenatesInRankOrder) {
  std::vector<std::byte> expected;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Tensor own = contribution(rank, dtype(), count());
    expected.insert(expected.end(), own.data.begin(), own.data.end());
  }
  for (const Tensor& got : received(CollectiveKind::AllGather, count(), count(), count() * ranks()))
    EXPECT_EQ(got.data, expected);
}

TEST_P(InProcess, AllReduceAddsInRankOrderAndRoundsOnce) {
  const Tensor expected = orderedSum(dtype(), 0, count(), count(), ranks());
  for (const Tensor& got : received(CollectiveKind::AllReduce, count(), count(), count()))
    EXPECT_EQ(got.data, expected.data);
}

TEST_P(InProcess, ReduceScatterGivesEachRankItsSlice) {
  const std::int64_t whole = count() * ranks();
  const std::vector<Tensor> got = received(CollectiveKind::ReduceScatter, whole, count(), count());
  for (int rank = 0; rank < ranks(); ++rank)
    EXPECT_EQ(got[static_cast<std::size_t>(rank)].data,
              orderedSum(dtype(), count() * rank, count(), whole, ranks()).data);
}

TEST_P(InProcess, BroadcastSendsTheTensorOfRank0) {
  for (const Tensor& got : received(CollectiveKind::Broadcast, count(), count(), count()))
    EXPECT_EQ(got.data, contribution(0, dtype(), count()).data);
}

INSTANTIATE_TEST_SUITE_P(Collectives, InProcess,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::ValuesIn(kDTypes),
                                          testing::ValuesIn(kCounts)));

TEST(InProcessGroup, ReducesInPlaceAndSeveralTensorsAtOnce) {
  std::vector<std::vector<float>> sums(3), largest(3);
  onRanks(3, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<float>& sum = sums[rank] = {1.0f, static_cast<float>(rank), 3.0f, 4.0f};
    std::vector<float>& most = largest[rank] = {static_cast<float>(rank)};
    auto* const a = reinterpret_cast<std::byte*>(sum.data());
    auto* const b = reinterpret_cast<std::byte*>(most.data());
    const CollectivePart parts[] = {{DType::F32, 4, a, a}, {DType::F32, 1, b, b}};
    communicator.run({.kind = CollectiveKind::AllReduce, .name = "sums", .parts = std::span(parts, 1)});
    communicator.run({.kind = CollectiveKind::AllReduce,
                      .reduction = Reduction::Max,
                      .name = "amaxes",
                      .parts = std::span(parts).subspan(1)});
  });
  for (const std::vector<float>& sum : sums) EXPECT_EQ(sum, (std::vector{3.0f, 3.0f, 9.0f, 12.0f}));
  for (const std::vector<float>& most : largest) EXPECT_EQ(most, (std::vector{2.0f}));
}

TEST(InProcessGroup, AMaximumIgnoresNan) {
  const float values[] = {NAN, 2.0f};
  const std::byte* const from[] = {reinterpret_cast<const std::byte*>(values),
                                   reinterpret_cast<const std::byte*>(values + 1)};
  float largest = 0.0f;
  reduceInRankOrder(Reduction::Max, DType::F32, from, 1, reinterpret_cast<std::byte*>(&largest));
  EXPECT_EQ(largest, 2.0f);
}

TEST(InProcessGroup, CallsThatDifferEndAllRanksWithASentence) {
  const auto messages = onRanks(3, [](Communicator& communicator) {
    float values[4] = {};
    auto* const data = reinterpret_cast<std::byte*>(values);
    const CollectivePart part{DType::F32, communicator.rank() == 2 ? 3 : 4, data, data};
    communicator.run({.kind = CollectiveKind::AllReduce, .name = "fc2.sum", .parts = std::span(&part, 1)});
  });
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              "rank 2 calls all-reduce of 3 f32 (fc2.sum), but rank 0 calls all-reduce of 4 f32 (fc2.sum). All ranks "
              "must run the same plan.");
}

TEST(InProcessGroup, ARankThatFailsEndsThoseThatWaitForIt) {
  const auto messages = onRanks(4, [](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() == 1) return communicator.abort("rank 1: no memory.");
    communicator.barrier();
  });
  EXPECT_EQ(messages, (std::vector<std::string>{"rank 1: no memory.", "", "rank 1: no memory.", "rank 1: no memory."}));
}

TEST(InProcessGroup, AgreesWhereAllRanksDo) {
  std::vector<std::string> answers(3);
  onRanks(3, [&](Communicator& communicator) {
    std::string& answer = answers[static_cast<std::size_t>(communicator.rank())];
    answer = communicator.agree(true) ? "yes" : "no";
    answer += communicator.agree(communicator.rank() != 1) ? " yes" : " no";
    EXPECT_EQ(communicator.failure(), std::nullopt);
    communicator.barrier();
    communicator.abort("over");
    EXPECT_EQ(communicator.failure(), "over");
  });
  EXPECT_EQ(answers, std::vector<std::string>(3, "yes no"));
}

// Sizes of the ring algorithm, as the NCCL tests define bus bandwidth.
TEST(WireBytes, AreThoseOfARing) {
  const CollectivePart part{DType::BF16, 100, nullptr, nullptr};
  EXPECT_EQ(wholeBytes(CollectiveKind::AllGather, part, 4), 800);
  EXPECT_EQ(wholeBytes(CollectiveKind::AllReduce, part, 4), 200);
  EXPECT_EQ(wireBytes(CollectiveKind::AllGather, 800, 4), 600);
  EXPECT_EQ(wireBytes(CollectiveKind::ReduceScatter, 800, 4), 600);
  EXPECT_EQ(wireBytes(CollectiveKind::AllReduce, 800, 4), 1200);
  EXPECT_EQ(wireBytes(CollectiveKind::AllReduce, 800, 1), 0);
}

TEST(Slices, CoverAllElementsOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 64})
    for (const int ranks : {1, 2, 3, 4, 9}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ElementRange slice = sliceOf(count, rank, ranks);
        EXPECT_EQ(slice.first, next);
        next += slice.count;
      }
      EXPECT_EQ(next, count);
    }
}

// A collective beside other work: begin() returns before the other ranks come, and await() when all have.
TEST(InProcessBeside, BeginsWithoutTheOtherRanksAndEndsWithThem) {
  std::promise<void> hasBegun;
  const auto messages = onRanks(2, [&](Communicator& communicator) {
    const float own = static_cast<float>(communicator.rank() + 1);
    float sum = 0.0F;
    const CollectivePart part{DType::F32, 1, reinterpret_cast<const std::byte*>(&own),
                              reinterpret_cast<std::byte*>(&sum)};
    if (communicator.rank() == 1) hasBegun.get_future().wait();
    communicator.begin({.kind = CollectiveKind::AllReduce, .name = "sum", .parts = {&part, 1}});
    if (communicator.rank() == 0) hasBegun.set_value();
    communicator.await();
    EXPECT_EQ(sum, 3.0F);
    ASSERT_TRUE(communicator.besideSpan());
    EXPECT_GE(communicator.besideSpan()->end, communicator.besideSpan()->start);
    communicator.await();  // nothing is left to wait for
  });
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

TEST(InProcessBeside, AFailureIsThrownWhereItIsAwaited) {
  const auto messages = onRanks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return communicator.abort("rank 1 of 2: no memory.");
    const CollectivePart part{};
    communicator.begin({.kind = CollectiveKind::AllReduce, .name = "sum", .parts = {&part, 1}});
    communicator.await();
  });
  EXPECT_EQ(messages.front(), "rank 1 of 2: no memory.");
}

/// A rank that fails between the two leaves when its collective is over.
TEST(InProcessBeside, ARankThatLeavesIsNotReadAnyMore) {
  const auto messages = onRanks(2, [](Communicator& communicator) {
    std::vector<float> own(1000, 1.0F);
    const auto bytes = std::as_writable_bytes(std::span(own));
    const CollectivePart part{DType::F32, 1000, bytes.data(), bytes.data()};
    communicator.begin({.kind = CollectiveKind::AllReduce, .name = "sum", .parts = {&part, 1}});
    communicator.leave();
    EXPECT_EQ(own.front(), 2.0F);
  });
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

TEST(InProcess, ARankThatDoesNotComeIsNamedAfterTheTimeLimit) {
  auto group = makeInProcessGroup(3, Patience(Seconds(0.05)));
  std::string message;
  {
    std::jthread other([&] { EXPECT_THROW(group[2]->barrier(), CommunicationError); });
    try {
      group[0]->barrier();
    } catch (const CommunicationError& error) {
      message = error.what();
    }
  }
  EXPECT_TRUE(message.starts_with("rank 1 of 3 did not reach the start of a run within 0.05 s.")) << message;
}

}  // namespace
}  // namespace fuseline
