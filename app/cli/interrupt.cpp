// Signals are blocked everywhere and taken by one thread, which may lock and allocate.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"

#include <unistd.h>

#include <ctime>

namespace fuseline::cli {

InterruptWatch::InterruptWatch() {
  sigemptyset(&m_signals);
  sigaddset(&m_signals, SIGINT);
  sigaddset(&m_signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &m_signals, &m_previous);
  m_thread = std::jthread([this](const std::stop_token& ended) { watch(ended); });
}

InterruptWatch::~InterruptWatch() {
  m_thread.request_stop();
  m_thread.join();
  pthread_sigmask(SIG_SETMASK, &m_previous, nullptr);
}

void InterruptWatch::watch(const std::stop_token& ended) {
  constexpr timespec kPoll{.tv_sec = 0, .tv_nsec = 20'000'000};
  while (!ended.stop_requested()) {
    const int signal = sigtimedwait(&m_signals, nullptr, &kPoll);
    if (signal < 0) continue;  // the poll's time is over
    constexpr int kSignalExit = 128;
    if (m_interrupted.stop_requested()) _exit(kSignalExit + signal);
    m_interrupted.request_stop();
  }
}

}  // namespace fuseline::cli
