// Signals stay blocked while a thread starts, which inherits that: the threads that watch for them get them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace fuseline {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &m_previous);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &m_previous, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t m_previous{};
};

}  // namespace fuseline
