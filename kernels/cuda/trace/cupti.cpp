// Looks up CUPTI's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/cupti.h"

#include "kernels/cuda/support/shared_library.h"

#include <cuda.h>

namespace fuseline::cuda {

namespace {

void bind(Symbols& symbols, Cupti& found) {
  symbols.find(found.version, "cuptiGetVersion");
  symbols.find(found.subscribe, "cuptiSubscribe_v2");
  symbols.find(found.unsubscribe, "cuptiUnsubscribe");
  symbols.find(found.enableCallback, "cuptiEnableCallback");
  symbols.find(found.errorMessage, "cuptiGetErrorMessage");
  symbols.find(found.graphNodeId, "cuptiGetGraphNodeId");
  symbols.find(found.registerBuffers, "cuptiActivityRegisterCallbacks");
  symbols.find(found.enable, "cuptiActivityEnable");
  symbols.find(found.disable, "cuptiActivityDisable");
  symbols.find(found.timestamp, "cuptiGetTimestamp");
  symbols.find(found.flush, "cuptiActivityFlushAll");
  symbols.find(found.nextRecord, "cuptiActivityGetNextRecord");
  symbols.find(found.numDropped, "cuptiActivityGetNumDroppedRecords");
  symbols.find(found.push, "cuptiActivityPushExternalCorrelationId");
  symbols.find(found.pop, "cuptiActivityPopExternalCorrelationId");
}

}  // namespace

Result<Cupti> loadCupti() { return loadFunctions<Cupti>("libcupti.so", CUDA_VERSION / 1000, bind); }

}  // namespace fuseline::cuda
