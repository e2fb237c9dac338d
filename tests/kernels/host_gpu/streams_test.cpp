// The GPU of host memory refuses the calls that a device refuses, and exposes behavior that a device leaves undefined.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_gpu/host_gpu.h"

#include <cstring>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace fuseline::host_gpu {
namespace {

/// Two streams, an event, and memory of the device with a counter that work adds to.
class HostGpuStreams : public ::testing::TestWithParam<Turn> {
 protected:
  void SetUp() override {
    m_before = setTurn(GetParam());
    for (cudaStream_t* const stream : {&m_main, &m_side})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    setMain(m_main);
    ASSERT_EQ(cudaEventCreateWithFlags(&m_event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&m_back, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    for (const cudaEvent_t event : {m_event, m_back}) cudaEventDestroy(event);
    for (const cudaStream_t stream : {m_side, m_main}) cudaStreamDestroy(stream);
    setMain(nullptr);
    setTurn(m_before);
    cudaGetLastError();
  }

  void write(cudaStream_t stream, int value) {
    submit(stream, [this, value] { m_written = value; });
  }
  void read(cudaStream_t stream) {
    submit(stream, [this] { m_read.push_back(m_written); });
  }
  /// Back and forth; every read returns the data written before.
  void workInOrder() {
    write(m_main, 1);
    order(m_main, m_event, m_side);
    read(m_side);
    write(m_side, 2);
    order(m_side, m_back, m_main);
    read(m_main);
  }
  void order(cudaStream_t first, cudaEvent_t event, cudaStream_t then) {
    EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(then, event, 0), cudaSuccess);
  }

  Turn m_before = Turn::Late;
  cudaStream_t m_main = nullptr;
  cudaStream_t m_side = nullptr;
  cudaEvent_t m_event = nullptr;
  cudaEvent_t m_back = nullptr;
  int m_written = 0;
  std::vector<int> m_read;
};

TEST_P(HostGpuStreams, RunWhatIsOrderedInOrder) {
  workInOrder();
  ASSERT_EQ(cudaStreamSynchronize(m_main), cudaSuccess);
  EXPECT_EQ(m_read, (std::vector{1, 2}));
}

/// One of the two turns shows each mistake.
TEST_P(HostGpuStreams, ShowWhatIsNotOrdered) {
  write(m_main, 1);
  read(m_side);  // data that the main stream may not have written yet
  ASSERT_EQ(cudaStreamSynchronize(m_main), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(m_side), cudaSuccess);
  EXPECT_EQ(m_read, std::vector(1, GetParam() == Turn::Early ? 0 : 1));
  m_read.clear();
  write(m_side, 2);
  read(m_main);  // data that the other stream may not have written yet
  ASSERT_EQ(cudaStreamSynchronize(m_main), cudaSuccess);
  EXPECT_EQ(m_read, std::vector(1, GetParam() == Turn::Early ? 2 : 1));
  cudaStreamSynchronize(m_side);
}

TEST_P(HostGpuStreams, GraphsDoAgainWhatWasCaptured) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(m_main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  workInOrder();
  ASSERT_EQ(cudaStreamEndCapture(m_main, &graph), cudaSuccess);
  EXPECT_TRUE(m_read.empty());
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int launch = 0; launch < 2; ++launch) ASSERT_EQ(cudaGraphLaunch(executable, m_main), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(m_main), cudaSuccess);
  EXPECT_EQ(m_read, (std::vector{1, 2, 1, 2}));
  EXPECT_EQ(cudaStreamWaitEvent(m_side, m_event, 0), cudaErrorCapturedEvent);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_P(HostGpuStreams, CapturesMustBeJoined) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(m_main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  order(m_main, m_event, m_side);
  write(m_side, 1);
  EXPECT_EQ(cudaStreamEndCapture(m_main, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  write(m_side, 2);  // the side is free again
  ASSERT_EQ(cudaStreamSynchronize(m_side), cudaSuccess);
  EXPECT_EQ(m_written, 2);
}

TEST_P(HostGpuStreams, CapturesEndWhereTheHostWouldWait) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 4), cudaSuccess);
  float onHost = 0.0F;
  const std::vector<std::function<cudaError_t()>> waits = {
      [&] { return cudaStreamSynchronize(m_main); }, [&] { return cudaStreamQuery(m_main); },
      [&] { return cudaFree(data); },
      [&] { return cudaMemcpyAsync(&onHost, data, 4, cudaMemcpyDeviceToHost, m_main); }};
  for (const auto& wait : waits) {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(m_main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(wait(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(m_main, &graph), cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_P(HostGpuStreams, CapturesWaitForNothingOutside) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaEventRecord(m_event, m_side), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(m_main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(m_main, m_event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(m_main, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_P(HostGpuStreams, TimeIsReadOfEventsThatArePast) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  float milliseconds = -1.0F;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  EXPECT_NE(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  cudaEventRecord(begin, m_main);
  cudaEventRecord(end, m_main);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamSynchronize(m_main), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0F);
  cudaEventRecord(m_event, m_main);  // without timing
  cudaStreamSynchronize(m_main);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, m_event), cudaErrorInvalidResourceHandle);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

TEST_P(HostGpuStreams, MemoryIsOfOneKind) {
  void* data = nullptr;
  std::vector<std::byte> onHost(16);
  ASSERT_EQ(cudaMalloc(&data, onHost.size()), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(data, onHost.data(), onHost.size(), cudaMemcpyHostToDevice, m_main), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(data, onHost.data(), onHost.size(), cudaMemcpyDeviceToDevice, m_main),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(data, onHost.data(), onHost.size() + 1, cudaMemcpyHostToDevice, m_main),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(onHost.data(), 0, onHost.size(), m_main), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(onHost.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
}

INSTANTIATE_TEST_SUITE_P(Turns, HostGpuStreams, ::testing::Values(Turn::Late, Turn::Early),
                         [](const auto& test) { return test.param == Turn::Late ? "Late" : "Early"; });

}  // namespace
}  // namespace fuseline::host_gpu
