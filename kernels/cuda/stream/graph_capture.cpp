// Stream capture, instantiation and launch.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream/graph_capture.h"

#include "kernels/cuda/support/check.h"
#include "kernels/cuda/trace/nvtx_range.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

using OwnedGraph = std::unique_ptr<CUgraph_st, cudaError_t (*)(cudaGraph_t)>;
using OwnedExecutableGraph = std::unique_ptr<CUgraphExec_st, cudaError_t (*)(cudaGraphExec_t)>;

/// Launches between the beginning and the end of a capture go to the graph. Those of other threads are not concerned.
Result<OwnedGraph> capture(Stream stream, const std::function<Result<void>()>& launches) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a CUDA graph");
  const Result<void> launched = launches();
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  OwnedGraph graph(captured, cudaGraphDestroy);
  if (launched && ended == cudaSuccess) return graph;
  cudaGetLastError();  // a refused capture breaks nothing: take its error off the record
  if (!launched) return launched.error();
  return Error{fmt::format("CUDA cannot capture the plan as a graph: {}.", cudaGetErrorString(ended)),
               ErrorKind::RunFailed};
}

/// Waits, so that the first launch does not wait for the upload.
OwnedExecutableGraph instantiate(const OwnedGraph& graph, Stream stream) {
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, graph.get(), 0), "instantiate a CUDA graph");
  OwnedExecutableGraph executable(made, cudaGraphExecDestroy);
  check(cudaGraphUpload(made, stream), "upload a CUDA graph");
  check(cudaStreamSynchronize(stream), "upload a CUDA graph");
  return executable;
}

class CapturedLaunches final : public RecordedLaunches {
 public:
  CapturedLaunches(OwnedExecutableGraph graph, CaptureTarget target)
      : m_graph(std::move(graph)),
        m_target(std::move(target)),
        m_name(m_target.rank + "the whole plan, as a CUDA graph") {}
  ~CapturedLaunches() override { cudaSetDevice(m_target.device); }
  CapturedLaunches(const CapturedLaunches&) = delete;
  CapturedLaunches& operator=(const CapturedLaunches&) = delete;

  void launch() override {
    const NvtxRange range(m_name);
    useDevice(m_target.device);
    m_target.log->add(m_name);
    check(cudaGraphLaunch(m_graph.get(), m_target.stream), "launch a CUDA graph");
  }

 private:
  OwnedExecutableGraph m_graph;
  CaptureTarget m_target;
  std::string m_name;
};

}  // namespace

Result<std::unique_ptr<RecordedLaunches>> captureLaunches(const CaptureTarget& target,
                                                          const std::function<Result<void>()>& launches) {
  useDevice(target.device);
  const Result<OwnedGraph> graph = capture(target.stream, launches);
  if (!graph) return graph.error();
  return std::unique_ptr<RecordedLaunches>(
      std::make_unique<CapturedLaunches>(instantiate(*graph, target.stream), target));
}

void refuseWhileCapturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "report whether a CUDA graph is being captured");
  if (status == cudaStreamCaptureStatusNone) return;
  throw DeviceFault("The host reads values that the GPU computes, for which a CUDA graph cannot wait.");
}

}  // namespace fuseline::cuda
