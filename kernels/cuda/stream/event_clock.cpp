// Events are made before the first run and used again in every one.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream/event_clock.h"

#include "kernels/cuda/stream/delay_launch.h"
#include "kernels/cuda/stream/stream_event.h"
#include "kernels/cuda/support/check.h"

#include <cstdint>
#include <vector>

namespace fuseline::cuda {

namespace {

class EventClock final : public DeviceClock {
 public:
  EventClock(int device, Stream stream, std::size_t numMoments, Stream besides)
      : m_device(device), m_stream(stream), m_besides(besides) {
    useDevice(device);
    check(cudaDeviceGetAttribute(&m_kilohertz, cudaDevAttrClockRate, device), "report its clock rate");
    m_events.reserve(numMoments);
    for (std::size_t i = 0; i < numMoments; ++i) {
      cudaEvent_t event = nullptr;
      check(cudaEventCreate(&event), "make an event");
      m_events.emplace_back(event, cudaEventDestroy);
    }
  }
  ~EventClock() override { cudaSetDevice(m_device); }
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  void mark(std::size_t moment) override { record(moment, m_stream); }
  void markTransfers(std::size_t moment) override { record(moment, m_besides); }

  void takeHeadStart(std::chrono::nanoseconds duration) override {
    constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
    useDevice(m_device);
    launchDelay(duration.count() * m_kilohertz / kNanosecondsPerMillisecond, m_stream);
  }

  double nanosecondsBetween(std::size_t from, std::size_t to) override {
    constexpr double kNanosecondsPerMillisecond = 1e6;
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, m_events.at(from).get(), m_events.at(to).get()), "read an event");
    return kNanosecondsPerMillisecond * static_cast<double>(milliseconds);
  }

 private:
  void record(std::size_t moment, Stream stream) {
    useDevice(m_device);
    check(cudaEventRecord(m_events.at(moment).get(), stream), "record an event");
  }

  int m_device;
  int m_kilohertz = 0;  // at most
  Stream m_stream;
  Stream m_besides;
  std::vector<OwnedEvent> m_events;
};

}  // namespace

std::unique_ptr<DeviceClock> makeEventClock(int device, Stream stream, std::size_t numMoments, Stream besides) {
  return std::make_unique<EventClock>(device, stream, numMoments, besides);
}

}  // namespace fuseline::cuda
