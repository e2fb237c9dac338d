// Runs queues, and graphs as separate queues.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_gpu/streams.h"

#include <algorithm>
#include <stdexcept>

namespace fuseline::host_gpu {

bool Queues::isIdle(StreamKey stream) const {
  const auto found = m_queues.find(stream);
  return found == m_queues.end() || found->second.empty();
}

void Queues::push(StreamKey stream, Item item, Turn turn) {
  m_turn = turn;
  m_queues[stream].push_back(std::move(item));
  runEarly();
}

void Queues::runFirst(StreamKey stream) {
  const Item item = std::move(m_queues[stream].front());
  m_queues[stream].pop_front();
  if (item.waitsFor && !item.waitsFor->isPast) reach(*item.waitsFor);
  if (item.work) item.work();
  if (!item.marks) return;
  *item.marks = {true, std::chrono::steady_clock::now()};
  runEarly();
}

/// All but the main stream, each as far as it goes without it.
void Queues::runEarly() {
  if (m_turn == Turn::Late) return;
  for (const auto& [stream, queue] : m_queues)
    if (stream != m_main) runAlone(stream);
}

void Queues::runAlone(StreamKey stream) {
  const auto canGoOn = [&] {
    const std::deque<Item>& queue = m_queues[stream];
    return !queue.empty() && (!queue.front().waitsFor || queue.front().waitsFor->isPast);
  };
  while (canGoOn()) runFirst(stream);
}

void Queues::run(StreamKey stream) {
  while (!m_queues[stream].empty()) runFirst(stream);
}

void Queues::runAll() {
  for (const auto& [stream, queue] : m_queues) run(stream);
}

/// Runs the stream that will mark the moment, up to there.
void Queues::reach(const Moment& moment) {
  for (auto& [stream, queue] : m_queues) {
    const auto marks = [&](const Item& item) { return item.marks.get() == &moment; };
    if (std::ranges::none_of(queue, marks)) continue;
    while (!moment.isPast) runFirst(stream);
    return;
  }
  throw std::logic_error("A stream waits for what no stream will do.");
}

bool Captured::isJoined() const {
  std::map<StreamKey, std::size_t> last;
  std::map<const Moment*, std::size_t> marked;
  for (std::size_t i = 0; i < items.size(); ++i) {
    last[items[i].first] = i;
    if (items[i].second.marks) marked[items[i].second.marks.get()] = i;
  }
  std::set<std::size_t> before;  // the origin's end
  std::vector<std::size_t> open;
  if (last.contains(origin)) open.push_back(last.at(origin));
  while (!open.empty()) {
    const std::size_t item = open.back();
    open.pop_back();
    if (!before.insert(item).second) continue;
    for (std::size_t earlier = item; earlier-- > 0;)
      if (items[earlier].first == items[item].first) {
        open.push_back(earlier);
        break;
      }
    if (const Moment* const moment = items[item].second.waitsFor.get()) open.push_back(marked.at(moment));
  }
  return std::ranges::all_of(last, [&](const auto& end) { return before.contains(end.second); });
}

void Captured::run(Turn turn) const {
  std::map<const Moment*, std::shared_ptr<Moment>> fresh;
  const auto freshOf = [&](const std::shared_ptr<Moment>& moment) -> std::shared_ptr<Moment> {
    if (!moment) return nullptr;
    std::shared_ptr<Moment>& made = fresh[moment.get()];
    if (!made) made = std::make_shared<Moment>();
    return made;
  };
  Queues queues(origin);
  for (const auto& [stream, item] : items)
    queues.push(stream, {freshOf(item.waitsFor), item.work, freshOf(item.marks)}, turn);
  queues.run(origin);
}

}  // namespace fuseline::host_gpu
