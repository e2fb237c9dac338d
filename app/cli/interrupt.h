// Ctrl-C as a request to stop: the run ends between steps and shows what it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace fuseline::cli {

/// Watches for SIGINT, SIGTERM, SIGUSR1 (from mpirun) and SIGHUP (a closed terminal) while it lives. A second one ends
/// the program at once.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  std::stop_token token() const { return m_interrupted.get_token(); }

 private:
  void watch(const std::stop_token& ended);

  sigset_t m_signals;
  sigset_t m_previous;
  std::stop_source m_interrupted;
  std::jthread m_thread;
};

}  // namespace fuseline::cli
