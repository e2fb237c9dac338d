// Streams in addition to the backend's own, on which a step runs independent work concurrently.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fuseline::cuda {

class Lanes {
 public:
  virtual ~Lanes() = default;
  virtual std::span<const Stream> streams() const = 0;
  /// Later launches on the first `count` streams begin after all earlier launches on the backend's stream.
  virtual void fork(std::size_t count) = 0;
  /// Later launches on the backend's stream begin after all earlier launches on the first `count` streams.
  virtual void join(std::size_t count) = 0;
};

/// Lanes of a GPU, which is the selected one. stream: the backend's own. Throws DeviceFault.
std::unique_ptr<Lanes> makeStreamLanes(Stream stream);

/// Where an item of a step runs, and a part of the workspace that no other lane has.
struct Lane {
  Stream stream = nullptr;
  std::byte* workspace = nullptr;
};

/// Assigns the items of a step to lanes: the next one to the lane with the least work so far.
class LaneTurns {
 public:
  /// lanes null: there is only the backend's stream. laneBytes: workspace of an item.
  LaneTurns(Lanes* lanes, Stream stream, std::size_t numItems, std::size_t laneBytes)
      : m_lanes(lanes), m_stream(stream), m_laneBytes(workspacePart(laneBytes)) {
    if (lanes) m_count = std::clamp<std::size_t>(numItems, 1, lanes->streams().size());
  }

  std::size_t workspaceBytes() const { return m_count * m_laneBytes; }

  /// work: of each item, in any unit. launch(item, lane)
  template <class Launch>
  void run(std::span<const std::int64_t> work, std::byte* workspace, const Launch& launch) const {
    if (m_count == 1) {
      for (std::size_t item = 0; item < work.size(); ++item) launch(item, Lane{m_stream, workspace});
      return;
    }
    m_lanes->fork(m_count);
    try {
      std::vector<std::int64_t> given(m_count, 0);
      for (std::size_t item = 0; item < work.size(); ++item) {
        const auto least = std::ranges::min_element(given);
        *least += work[item];
        launch(item, laneAt(static_cast<std::size_t>(least - given.begin()), workspace));
      }
    } catch (...) {
      joinAfterFailure();
      throw;
    }
    m_lanes->join(m_count);
  }

 private:
  Lane laneAt(std::size_t lane, std::byte* workspace) const {
    return {m_lanes->streams()[lane], workspace + lane * m_laneBytes};
  }

  /// Earlier launches still run. If joining fails as well, the fault is the same.
  void joinAfterFailure() const {
    try {
      m_lanes->join(m_count);
    } catch (...) {
    }
  }

  Lanes* m_lanes;
  Stream m_stream;
  std::size_t m_laneBytes;
  std::size_t m_count = 1;
};

}  // namespace fuseline::cuda
