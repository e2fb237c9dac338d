// Streams of the host's GPU, events between them, and captures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/host_gpu/host_gpu.h"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace fuseline::host_gpu {

/// What an event says once its stream has come to it.
struct Moment {
  bool isPast = false;
  std::chrono::steady_clock::time_point at;
};

/// What a stream does next: waits, works, then says that it has.
struct Item {
  std::shared_ptr<Moment> waitsFor;
  std::function<void()> work;
  std::shared_ptr<Moment> marks;
};

/// Whom a stream is, for items of graphs, too.
using StreamKey = const void*;

/// First in, first out for every stream; between streams as they wait for each other. main: is late in any turn.
class Queues {
 public:
  explicit Queues(StreamKey main = nullptr) : m_main(main) {}
  void setMain(StreamKey stream) { m_main = stream; }
  void push(StreamKey stream, Item item, Turn turn);
  bool isIdle(StreamKey stream) const;
  /// To its end, with what it waits for.
  void run(StreamKey stream);
  void runAll();

 private:
  void runFirst(StreamKey stream);
  void runEarly();
  void runAlone(StreamKey stream);
  void reach(const Moment& moment);
  StreamKey m_main;
  Turn m_turn = Turn::Late;  // of the last push
  std::map<StreamKey, std::deque<Item>> m_queues;
};

/// What was captured: the items in the order in which they were launched.
struct Captured {
  StreamKey origin = nullptr;
  std::vector<std::pair<StreamKey, Item>> items;

  /// Does the origin's end come after the ends of all other streams?
  bool isJoined() const;
  /// With moments of its own.
  void run(Turn turn) const;
};

}  // namespace fuseline::host_gpu
