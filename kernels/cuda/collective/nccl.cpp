// Looks up NCCL's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/nccl.h"

#include "kernels/cuda/support/shared_library.h"

#include <dlfcn.h>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

constexpr const char* kFileName = "libnccl.so.2";

std::string pathOf(const void* function) {
  Dl_info library{};
  return dladdr(function, &library) != 0 && library.dli_fname ? library.dli_fname : kFileName;
}

}  // namespace

Result<Nccl> loadNccl() {
  const Result<void*> library = openLibrary(kFileName);
  if (!library)
    return Error{fmt::format("Ranks on several GPUs need NCCL. {} Install it: pip install nvidia-nccl-cu{}, or "
                             "libnccl2 from NVIDIA's repository.",
                             library.error().message, CUDART_VERSION / 1000),
                 ErrorKind::NoDevice};
  Symbols symbols(*library);
  Nccl found;
  symbols.find(found.version, "ncclGetVersion");
  symbols.find(found.errorString, "ncclGetErrorString");
  symbols.find(found.lastError, "ncclGetLastError");
  symbols.find(found.makeId, "ncclGetUniqueId");
  symbols.find(found.initRank, "ncclCommInitRankConfig");
  symbols.find(found.asyncError, "ncclCommGetAsyncError");
  symbols.find(found.finalize, "ncclCommFinalize");
  symbols.find(found.destroy, "ncclCommDestroy");
  symbols.find(found.abort, "ncclCommAbort");
  symbols.find(found.groupStart, "ncclGroupStart");
  symbols.find(found.groupEnd, "ncclGroupEnd");
  symbols.find(found.allGather, "ncclAllGather");
  symbols.find(found.reduceScatter, "ncclReduceScatter");
  symbols.find(found.allReduce, "ncclAllReduce");
  symbols.find(found.broadcast, "ncclBroadcast");
  symbols.find(found.send, "ncclSend");
  symbols.find(found.receive, "ncclRecv");
  if (!symbols.missing().empty())
    return Error{fmt::format("{} has no function {}: it is older than NCCL {}. Install a newer one: pip install "
                             "nvidia-nccl-cu{}.",
                             kFileName, symbols.missing(), formatNcclVersion(kOldestNccl), CUDART_VERSION / 1000),
                 ErrorKind::NoDevice};
  found.path = pathOf(reinterpret_cast<const void*>(found.version));
  return found;
}

}  // namespace fuseline::cuda
