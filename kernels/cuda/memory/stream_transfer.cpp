// Two events per transfer: one signals that the source is ready, the other that the copy is done.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory/stream_transfer.h"

#include "kernels/cuda/stream/stream_event.h"
#include "kernels/cuda/support/check.h"

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

namespace {

class PinnedMemory final : public DeviceMemory {
 public:
  PinnedMemory(int device, std::size_t sizeBytes) : m_device(device), m_sizeBytes(sizeBytes) {
    const cudaError_t error = cudaHostAlloc(&m_data, sizeBytes, cudaHostAllocDefault);
    if (error != cudaSuccess) cudaGetLastError();  // a refused allocation breaks nothing: take its error off the record
    check(error, "lock pages of the host's memory");
  }
  /// On a thread that has chosen no device, this would make a context on the first one.
  ~PinnedMemory() override {
    cudaSetDevice(m_device);
    cudaFreeHost(m_data);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(m_data); }
  std::size_t sizeBytes() const override { return m_sizeBytes; }

 private:
  int m_device;
  void* m_data = nullptr;
  std::size_t m_sizeBytes;
};

class StreamTransfer final : public Transfer {
 public:
  StreamTransfer(const TransferStreams& streams, std::span<std::byte> to, const std::byte* from, cudaMemcpyKind kind)
      : m_streams(streams), m_to(to), m_from(from), m_kind(kind) {}

  void begin() override {
    recordEvent(m_isReady, m_streams.stream);
    waitForEvent(m_streams.besides, m_isReady);
    check(cudaMemcpyAsync(m_to.data(), m_from, m_to.size(), m_kind, m_streams.besides), "copy a tensor");
    recordEvent(m_isDone, m_streams.besides);
  }

  void end() override { waitForEvent(m_streams.stream, m_isDone); }

 private:
  TransferStreams m_streams;
  std::span<std::byte> m_to;
  const std::byte* m_from;
  cudaMemcpyKind m_kind;
  OwnedEvent m_isReady = makeEvent();
  OwnedEvent m_isDone = makeEvent();
};

}  // namespace

std::unique_ptr<DeviceMemory> makePinnedMemory(int device, std::size_t sizeBytes) {
  return std::make_unique<PinnedMemory>(device, sizeBytes);
}

std::unique_ptr<Transfer> makeStreamTransfer(const TransferStreams& streams, std::span<std::byte> to,
                                             const std::byte* from, TransferDirection direction) {
  const cudaMemcpyKind kind = direction == TransferDirection::ToHost ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  return std::make_unique<StreamTransfer>(streams, to, from, kind);
}

}  // namespace fuseline::cuda
