// Ranks over sockets: the bits of the group in process, and sentences for ranks that end or do not come.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/in_process.h"
#include "core/collective/socket_exchange.h"
#include "core/tensor/random_tensor.h"
#include "core/tensor/tensor.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace std::chrono_literals;
using Work = std::function<void(Exchange&)>;

/// Sockets of each rank of a star.
std::vector<std::vector<int>> connectedSockets(int ranks) {
  std::vector<std::vector<int>> sockets(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 1; rank < sockets.size(); ++rank) {
    int pair[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    sockets[0].push_back(pair[0]);
    sockets[rank].push_back(pair[1]);
  }
  return sockets;
}

/// Runs `work` as every rank, each with its end of the connections. Returns the message of each; empty: none.
std::vector<std::string> overSockets(int ranks, const Work& work, Patience patience = Patience()) {
  const std::vector<std::vector<int>> sockets = connectedSockets(ranks);
  std::vector<std::string> messages(sockets.size());
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        auto exchange = makeSocketExchange(rank, ranks, sockets[static_cast<std::size_t>(rank)], patience);
        try {
          work(**exchange);
        } catch (const CommunicationError& error) {
          messages[static_cast<std::size_t>(rank)] = error.what();
        }
      });
  }
  return messages;
}

/// Results of all collectives, one after the other.
std::vector<std::byte> resultsOf(Communicator& communicator, DType dtype, std::int64_t count) {
  std::vector<std::byte> all;
  for (const CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce,
                                    CollectiveKind::Broadcast}) {
    const bool isScatter = kind == CollectiveKind::ReduceScatter;
    const std::int64_t given = isScatter ? count * communicator.size() : count;
    const Tensor from = randomNormal({.dtype = dtype, .shape = {given}}, 5, fmt::format("{}", communicator.rank()));
    Tensor to = Tensor::zeros({.dtype = dtype, .shape = {count * communicator.size()}});
    const CollectivePart parts[] = {{dtype, count, from.data.data(), to.data.data()}};
    communicator.run({.kind = kind, .name = "test", .parts = parts});
    all.insert(all.end(), to.data.begin(), to.data.end());
    std::ranges::fill(to.data, std::byte{0});
    communicator.begin({.kind = kind, .name = "test", .parts = parts});  // beside this thread: the same again
    communicator.await();
    all.insert(all.end(), to.data.begin(), to.data.end());
  }
  communicator.barrier();
  return all;
}

TEST(SocketExchange, CollectivesHaveTheBitsOfTheGroupInProcess) {
  for (const int ranks : {2, 3, 4})
    for (const DType dtype : {DType::F32, DType::BF16})
      for (const std::int64_t count : {0, 1, 7, 5000}) {
        const auto size = static_cast<std::size_t>(ranks);
        std::vector<std::vector<std::byte>> got(size), expected(size);
        overSockets(ranks, [&](Exchange& exchange) {
          const auto unowned = std::shared_ptr<Exchange>(&exchange, [](Exchange*) {});
          const auto communicator = makeExchangeCommunicator(unowned);
          got[static_cast<std::size_t>(exchange.rank())] = resultsOf(*communicator, dtype, count);
        });
        auto group = makeInProcessGroup(ranks);
        {
          std::vector<std::jthread> threads;
          for (std::size_t rank = 0; rank < size; ++rank)
            threads.emplace_back([&, rank] { expected[rank] = resultsOf(*group[rank], dtype, count); });
        }
        EXPECT_EQ(got, expected) << ranks << " ranks, " << count << " elements";
      }
}

TEST(SocketExchange, TextsOfAnyLengthReachAllRanks) {
  const std::vector<std::string> texts = {"", "a", std::string(100000, 'b')};
  overSockets(3, [&](Exchange& exchange) {
    const auto communicator = makeExchangeCommunicator(std::shared_ptr<Exchange>(&exchange, [](Exchange*) {}));
    EXPECT_EQ(gatherTexts(*communicator, texts[static_cast<std::size_t>(exchange.rank())], "texts"), texts);
  });
}

void meet(Exchange& exchange, std::string_view name) {
  makeExchangeCommunicator(std::shared_ptr<Exchange>(&exchange, [](Exchange*) {}))->barrier();
  const auto unowned = std::shared_ptr<Exchange>(&exchange, [](Exchange*) {});
  gatherTexts(*makeExchangeCommunicator(unowned), "text", name);
}

TEST(SocketExchange, ARankThatEndsIsNamedByAllOthers) {
  const auto messages = overSockets(4, [](Exchange& exchange) {
    if (exchange.rank() != 2) meet(exchange, "fc1.gather");
  });
  for (const std::size_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(messages[rank].find("rank 2 of 4 (process "), 0u) << messages[rank];
    EXPECT_NE(messages[rank].find(" has ended while rank 0 waited for it in "), std::string::npos) << messages[rank];
  }
}

TEST(SocketExchange, TheEndOfRank0IsNoticed) {
  const auto messages = overSockets(3, [](Exchange& exchange) {
    if (exchange.rank() != 0) meet(exchange, "fc1.gather");
  });
  for (const std::size_t rank : {1u, 2u}) EXPECT_EQ(messages[rank].find("rank 0 of 3 (process "), 0u) << messages[rank];
}

TEST(SocketExchange, ARankThatDoesNotComeIsNamed) {
  const auto messages = overSockets(
      3,
      [](Exchange& exchange) {
        if (exchange.rank() == 1) std::this_thread::sleep_for(600ms);
        if (exchange.rank() != 1) meet(exchange, "fc1.gather");
      },
      Patience(Seconds(0.2)));
  for (const std::size_t rank : {0u, 2u})
    EXPECT_NE(messages[rank].find(") did not reach the start of a run within 0 s."), std::string::npos)
        << messages[rank];
}

TEST(SocketExchange, AReasonReachesTheRanksThatWait) {
  const auto messages = overSockets(3, [](Exchange& exchange) {
    if (exchange.rank() == 1) return exchange.abort("rank 1 of 3: no memory.");
    meet(exchange, "fc1.gather");
  });
  EXPECT_EQ(messages, (std::vector<std::string>{"rank 1 of 3: no memory.", "", "rank 1 of 3: no memory."}));
}

TEST(SocketExchange, SizesThatDifferAreRefused) {
  const auto messages = overSockets(2, [](Exchange& exchange) {
    std::vector<float> from(8), to(16);
    const CollectivePart part{DType::F32, exchange.rank() == 0 ? 4 : 3, reinterpret_cast<std::byte*>(from.data()),
                              reinterpret_cast<std::byte*>(to.data())};
    makeExchangeCommunicator(std::shared_ptr<Exchange>(&exchange, [](Exchange*) {
    }))->run({.kind = CollectiveKind::AllGather, .name = "fc1.gather", .parts = std::span(&part, 1)});
  });
  EXPECT_NE((messages[0] + messages[1]).find("All ranks must run the same plan."), std::string::npos);
}

TEST(Patience, GrowsWithTheLongestWait) {
  Patience patience;
  EXPECT_EQ(patience.limit(), Seconds(120.0));
  patience.waited(Seconds(0.1));
  EXPECT_EQ(patience.limit(), Seconds(30.0));
  patience.waited(Seconds(2.0));
  patience.waited(Seconds(1.0));
  EXPECT_EQ(patience.limit(), Seconds(100.0));
}

}  // namespace
}  // namespace fuseline
