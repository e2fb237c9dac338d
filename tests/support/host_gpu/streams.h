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

/// State of an event after its stream has reached it.
struct Moment {
  bool isPast = false;
  std::chrono::steady_clock::time_point at;
};

/// The next item of a stream: waits, works, then signals its end.
struct Item {
  std::shared_ptr<Moment> waitsFor;
  std::function<bool()> work;  // goes on as far as it can, and is called again until it gives true; may be empty
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
  /// Runs the stream to its end, including the work it waits for. No: it waits for another device.
  bool run(StreamKey stream);
  /// The same for one item.
  bool runFirst(StreamKey stream);

 private:
  void runEarly();
  void runAlone(StreamKey stream);
  bool reach(const Moment& moment);
  StreamKey m_main;
  Turn m_turn = Turn::Late;  // of the last push
  std::map<StreamKey, std::deque<Item>> m_queues;
  std::set<StreamKey> m_busy;  // within an item
};

/// A capture: the items in the order in which they were launched.
struct Captured {
  StreamKey origin = nullptr;
  std::vector<std::pair<StreamKey, Item>> items;

  /// Does the origin's end come after the ends of all other streams?
  bool isJoined() const;
  /// With separate moments: work that runs them.
  std::function<bool()> start(Turn turn) const;
};

}  // namespace fuseline::host_gpu
