// Hands work to a thread, and its exceptions back.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/beside_thread.h"

#include <utility>

namespace fuseline {

BesideThread::~BesideThread() {
  {
    const std::lock_guard lock(m_mutex);
    m_isOver = true;
  }
  m_changed.notify_all();
  if (m_thread.joinable()) m_thread.join();
}

void BesideThread::serve() {
  while (true) {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_isOver || m_isBusy; });
    if (!m_isBusy) return;
    lock.unlock();
    BesideSpan span{.start = std::chrono::steady_clock::now()};
    std::exception_ptr problem;
    try {
      m_work();
    } catch (...) {
      problem = std::current_exception();
    }
    span.end = std::chrono::steady_clock::now();
    lock.lock();
    m_span = span;
    m_problem = problem;
    m_isBusy = false;
    m_changed.notify_all();
  }
}

void BesideThread::waitUntilIdle() {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, [this] { return !m_isBusy; });
}

void BesideThread::begin(Work work) {
  waitUntilIdle();
  {
    const std::lock_guard lock(m_mutex);
    m_work = std::move(work);
    m_problem = nullptr;
    m_isBusy = true;
  }
  if (!m_thread.joinable()) m_thread = std::thread([this] { serve(); });
  m_changed.notify_all();
}

void BesideThread::await() {
  waitUntilIdle();
  if (const std::exception_ptr problem = std::exchange(m_problem, nullptr)) std::rethrow_exception(problem);
}

void BesideThread::settle() noexcept {
  waitUntilIdle();
  m_problem = nullptr;
}

}  // namespace fuseline
