// Looks up CUPTI's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cupti.h"

#include "kernels/cuda/shared_library.h"

#include <cuda.h>
#include <fmt/format.h>

namespace fuseline::cuda {

Result<Cupti> loadCupti() {
  constexpr int kMajor = CUDA_VERSION / 1000;
  const std::string fileName = fmt::format("libcupti.so.{}", kMajor);
  const Result<void*> library = openLibrary(fileName);
  if (!library) return library.error();
  Symbols symbols(*library);
  Cupti found;
  symbols.find(found.subscribe, "cuptiSubscribe_v2");
  symbols.find(found.unsubscribe, "cuptiUnsubscribe");
  symbols.find(found.enableCallback, "cuptiEnableCallback");
  symbols.find(found.errorMessage, "cuptiGetErrorMessage");
  symbols.find(found.graphNodeId, "cuptiGetGraphNodeId");
  symbols.find(found.registerBuffers, "cuptiActivityRegisterCallbacks");
  symbols.find(found.enable, "cuptiActivityEnable");
  symbols.find(found.disable, "cuptiActivityDisable");
  symbols.find(found.flush, "cuptiActivityFlushAll");
  symbols.find(found.nextRecord, "cuptiActivityGetNextRecord");
  symbols.find(found.numDropped, "cuptiActivityGetNumDroppedRecords");
  symbols.find(found.push, "cuptiActivityPushExternalCorrelationId");
  symbols.find(found.pop, "cuptiActivityPopExternalCorrelationId");
  if (symbols.missing().empty()) return found;
  return Error{fmt::format("{} has no function {}; it is not the CUPTI of CUDA {}. Install that one.", fileName,
                           symbols.missing(), kMajor),
               ErrorKind::RunFailed};
}

}  // namespace fuseline::cuda
