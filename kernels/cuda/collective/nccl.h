// The functions and constants of NCCL that ranks need, found in the library at run time.
// SPDX-License-Identifier: Apache-2.0
// Declared here, because CUDA's toolkit may lack NCCL's header. Values: NVIDIA's nccl.h of NCCL 2.19, whose binary
// interface later versions keep.
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/stream/stream.h"

#include <climits>
#include <cstddef>
#include <string>

struct ncclComm;

namespace fuseline::cuda {

using NcclHandle = ncclComm*;

enum class NcclStatus : int {
  Success = 0,
  SystemError = 2,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7
};
enum class NcclType : int { Uint8 = 1, Float16 = 6, Float32 = 7, Bfloat16 = 9 };
enum class NcclReduction : int { Sum = 0, Max = 2 };

struct NcclId {
  char bytes[128] = {};
};

/// The oldest version that has every field and function here.
inline constexpr int kOldestNccl = 21900;

/// ncclConfig_t as of kOldestNccl; a newer library takes the defaults for its own fields.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldestNccl;
  int isBlocking = 0;
  int cgaClusterSize = INT_MIN;  // INT_MIN: the library's default
  int minCtas = INT_MIN;
  int maxCtas = INT_MIN;
  const char* netName = nullptr;
  int splitShare = INT_MIN;
};

struct Nccl {
  NcclStatus (*version)(int*) = nullptr;
  const char* (*errorString)(NcclStatus) = nullptr;
  const char* (*lastError)(NcclHandle) = nullptr;
  NcclStatus (*makeId)(NcclId*) = nullptr;
  NcclStatus (*initRank)(NcclHandle*, int ranks, NcclId, int rank, NcclConfig*) = nullptr;
  NcclStatus (*asyncError)(NcclHandle, NcclStatus*) = nullptr;
  NcclStatus (*finalize)(NcclHandle) = nullptr;
  NcclStatus (*destroy)(NcclHandle) = nullptr;
  NcclStatus (*abort)(NcclHandle) = nullptr;
  NcclStatus (*groupStart)() = nullptr;
  NcclStatus (*groupEnd)() = nullptr;
  NcclStatus (*allGather)(const void* from, void* to, std::size_t count, NcclType, NcclHandle, Stream) = nullptr;
  NcclStatus (*reduceScatter)(const void* from, void* to, std::size_t count, NcclType, NcclReduction, NcclHandle,
                              Stream) = nullptr;
  NcclStatus (*allReduce)(const void* from, void* to, std::size_t count, NcclType, NcclReduction, NcclHandle,
                          Stream) = nullptr;
  NcclStatus (*broadcast)(const void* from, void* to, std::size_t count, NcclType, int root, NcclHandle,
                          Stream) = nullptr;
  NcclStatus (*send)(const void* from, std::size_t count, NcclType, int peer, NcclHandle, Stream) = nullptr;
  NcclStatus (*receive)(void* to, std::size_t count, NcclType, int peer, NcclHandle, Stream) = nullptr;
  std::string path;  // of the library
};

/// Errors (NoDevice): the library or a function is missing; a sentence with the next step.
Result<Nccl> loadNccl();

/// "2.28.9" of 22809.
std::string formatNcclVersion(int version);

/// Errors (NoDevice): the library is too old, with the next step.
Result<void> checkVersion(const Nccl& nccl);

}  // namespace fuseline::cuda
