// Signals are blocked everywhere and taken by one thread, which may lock and allocate.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"

#include <unistd.h>

#include <chrono>
#include <ctime>

namespace fuseline::cli {

namespace {

/// As `nohup` wants it.
bool isIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  sigemptyset(&m_signals);
  sigaddset(&m_signals, SIGINT);
  sigaddset(&m_signals, SIGTERM);
  sigaddset(&m_signals, SIGUSR1);  // mpirun passes it on to ranks
  if (!isIgnored(SIGHUP)) sigaddset(&m_signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &m_signals, &m_previous);
  m_thread = std::jthread([this](const std::stop_token& ended) { watch(ended); });
}

InterruptWatch::~InterruptWatch() {
  m_thread.request_stop();
  m_thread.join();
  pthread_sigmask(SIG_SETMASK, &m_previous, nullptr);
}

void InterruptWatch::watch(const std::stop_token& ended) {
  using Clock = std::chrono::steady_clock;
  constexpr timespec kPoll{.tv_sec = 0, .tv_nsec = 20'000'000};
  constexpr auto kSameRequest = std::chrono::milliseconds(500);  // `timeout` sends its signal twice
  constexpr int kSignalExit = 128;
  Clock::time_point first;
  while (!ended.stop_requested()) {
    const int signal = sigtimedwait(&m_signals, nullptr, &kPoll);
    if (signal < 0) continue;  // the poll's time is over
    if (m_interrupted.stop_requested() && Clock::now() - first > kSameRequest) _exit(kSignalExit + signal);
    if (m_interrupted.request_stop()) first = Clock::now();
  }
}

}  // namespace fuseline::cli
