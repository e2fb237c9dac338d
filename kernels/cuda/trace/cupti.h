// The functions of CUPTI that the backend calls, found in the library at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <cupti.h>

namespace fuseline::cuda {

struct Cupti {
  decltype(cuptiGetVersion)* version = nullptr;
  decltype(cuptiSubscribe_v2)* subscribe = nullptr;
  decltype(cuptiUnsubscribe)* unsubscribe = nullptr;
  decltype(cuptiEnableCallback)* enableCallback = nullptr;
  decltype(cuptiGetErrorMessage)* errorMessage = nullptr;
  decltype(cuptiGetGraphNodeId)* graphNodeId = nullptr;
  decltype(cuptiActivityRegisterCallbacks)* registerBuffers = nullptr;
  decltype(cuptiActivityEnable)* enable = nullptr;
  decltype(cuptiActivityDisable)* disable = nullptr;
  decltype(cuptiGetTimestamp)* timestamp = nullptr;
  decltype(cuptiActivityFlushAll)* flush = nullptr;
  decltype(cuptiActivityGetNextRecord)* nextRecord = nullptr;
  decltype(cuptiActivityGetNumDroppedRecords)* numDropped = nullptr;
  decltype(cuptiActivityPushExternalCorrelationId)* push = nullptr;
  decltype(cuptiActivityPopExternalCorrelationId)* pop = nullptr;
};

/// The library of the major version that this was compiled with: records have its layout. Errors: the library or one
/// of the functions is missing; a sentence with the next step.
Result<Cupti> loadCupti();

}  // namespace fuseline::cuda
