// Streams of a GPU, and events between them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream/lanes.h"

#include "kernels/cuda/stream/owned_stream.h"
#include "kernels/cuda/stream/stream_event.h"

#include <array>

namespace fuseline::cuda {

namespace {

/// The number that TransformerEngine uses for grouped GEMMs (num_compute_streams).
constexpr std::size_t kNumLanes = 4;

class StreamLanes final : public Lanes {
 public:
  explicit StreamLanes(Stream stream) : m_stream(stream) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) m_streams[lane] = m_sides[lane].stream.get();
  }

  std::span<const Stream> streams() const override { return m_streams; }

  void fork(std::size_t count) override {
    recordEvent(m_begin, m_stream);
    for (const Side& side : std::span(m_sides).first(count)) waitForEvent(side.stream.get(), m_begin);
  }

  void join(std::size_t count) override {
    for (const Side& side : std::span(m_sides).first(count)) {
      recordEvent(side.end, side.stream.get());
      waitForEvent(m_stream, side.end);
    }
  }

 private:
  struct Side {
    OwnedStream stream;
    OwnedEvent end = makeEvent();
  };

  Stream m_stream;
  OwnedEvent m_begin = makeEvent();
  std::array<Side, kNumLanes> m_sides;
  std::array<Stream, kNumLanes> m_streams = {};
};

}  // namespace

std::unique_ptr<Lanes> makeStreamLanes(Stream stream) { return std::make_unique<StreamLanes>(stream); }

}  // namespace fuseline::cuda
