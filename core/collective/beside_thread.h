// BesideThread: one piece of work at a time beside the thread that begins it. The collectives of hosts run on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace fuseline {

/// begin(), await() and settle() are called by one thread. The thread beside it starts with the first work.
class BesideThread {
 public:
  using Work = std::function<void()>;

  BesideThread() = default;
  /// Waits for work in progress.
  ~BesideThread();
  BesideThread(const BesideThread&) = delete;
  BesideThread& operator=(const BesideThread&) = delete;

  /// Waits for earlier work first.
  void begin(Work work);
  /// Returns when the work is done. Throws what it threw.
  void await();
  /// The same, but keeps what it threw to itself.
  void settle() noexcept;
  /// When the last work ran; nothing: there was none.
  std::optional<BesideSpan> span() const { return m_span; }

 private:
  void serve();
  void waitUntilIdle();

  std::mutex m_mutex;
  std::condition_variable m_changed;
  Work m_work;
  bool m_isBusy = false;
  bool m_isOver = false;
  std::exception_ptr m_problem;
  std::optional<BesideSpan> m_span;
  std::thread m_thread;
};

}  // namespace fuseline
