// One pass over memory, on the stream of the kernels that follow. It reads: written cache lines would be written back
// during the measurement.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory/cache_filler.h"

#include "kernels/cuda/memory/arena.h"
#include "kernels/cuda/memory/read_launch.h"
#include "kernels/cuda/support/check.h"

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

class L2Filler final : public CacheFiller {
 public:
  L2Filler(int device, Stream stream)
      : m_device(device), m_stream(stream), m_sizeBytes(2 * l2CacheBytes()), m_memory(m_sizeBytes) {
    check(cudaMemsetAsync(m_memory.data(), 0, m_sizeBytes, m_stream), "fill its cache");
  }
  ~L2Filler() override { cudaSetDevice(m_device); }  // where the memory is given back
  L2Filler(const L2Filler&) = delete;
  L2Filler& operator=(const L2Filler&) = delete;

  Result<void> fill() override try {
    useDevice(m_device);
    launchRead(m_memory.data(), m_sizeBytes, m_stream);
    check(cudaStreamSynchronize(m_stream), "fill its cache");
    return {};
  } catch (const DeviceFault& fault) {
    return Error{fmt::format("cuda:{}: {}", m_device, fault.what()), ErrorKind::RunFailed};
  }

 private:
  int m_device;
  Stream m_stream;
  std::size_t m_sizeBytes;
  Arena m_memory;
};

}  // namespace

std::size_t l2CacheBytes() {
  int sizeBytes = 0;
  check(cudaDeviceGetAttribute(&sizeBytes, cudaDevAttrL2CacheSize, selectedDevice()), "report the size of its cache");
  return static_cast<std::size_t>(sizeBytes);
}

std::unique_ptr<CacheFiller> makeCacheFiller(int device, Stream stream) {
  return std::make_unique<L2Filler>(device, stream);
}

}  // namespace fuseline::cuda
