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

/// An item stays in its queue until it is done.
bool Queues::runFirst(StreamKey stream) {
  std::deque<Item>& queue = m_queues[stream];
  if (!m_busy.insert(stream).second) return false;
  const Item item = queue.front();
  bool isDone = true;
  try {
    isDone = (!item.waitsFor || item.waitsFor->isPast || reach(*item.waitsFor)) && (!item.work || item.work());
  } catch (...) {
    m_busy.erase(stream);
    queue.pop_front();
    throw;
  }
  m_busy.erase(stream);
  if (!isDone) return false;
  queue.pop_front();
  if (!item.marks) return true;
  *item.marks = {true, std::chrono::steady_clock::now()};
  runEarly();
  return true;
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
  while (canGoOn())
    if (!runFirst(stream)) return;
}

bool Queues::run(StreamKey stream) {
  while (!m_queues[stream].empty())
    if (!runFirst(stream)) return false;
  return true;
}

/// Runs the stream that will mark the moment, up to there.
bool Queues::reach(const Moment& moment) {
  for (auto& [stream, queue] : m_queues) {
    const auto marks = [&](const Item& item) { return item.marks.get() == &moment; };
    if (std::ranges::none_of(queue, marks)) continue;
    while (!moment.isPast)
      if (!runFirst(stream)) return false;
    return true;
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

std::function<bool()> Captured::start(Turn turn) const {
  std::map<const Moment*, std::shared_ptr<Moment>> fresh;
  const auto freshOf = [&](const std::shared_ptr<Moment>& moment) -> std::shared_ptr<Moment> {
    if (!moment) return nullptr;
    std::shared_ptr<Moment>& made = fresh[moment.get()];
    if (!made) made = std::make_shared<Moment>();
    return made;
  };
  const auto queues = std::make_shared<Queues>(origin);
  for (const auto& [stream, item] : items)
    queues->push(stream, {freshOf(item.waitsFor), item.work, freshOf(item.marks)}, turn);
  return [queues, origin = origin] { return queues->run(origin); };
}

}  // namespace fuseline::host_gpu
