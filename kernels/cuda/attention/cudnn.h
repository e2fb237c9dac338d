// The functions and constants of cuDNN's backend API that attention needs, found in the library at run time.
// SPDX-License-Identifier: Apache-2.0
// Declared here, because no package of CUDA's toolkit has cuDNN's headers. Values: NVIDIA's cudnn_graph.h of cuDNN 9,
// whose binary interface stays the same throughout that major version.
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

struct cudnnContext;

namespace fuseline::cuda {

inline constexpr int kCudnnMajor = 9;

using CudnnHandle = cudnnContext*;
using CudnnDescriptor = void*;
using CudnnStatus = int;  // 0: success

enum class CudnnDescriptorType : int {
  Pointwise = 0,
  EngineConfig = 3,
  EngineHeuristics = 4,
  ExecutionPlan = 5,
  PointwiseOperation = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
  Matmul = 18,
  MatmulOperation = 19,
  Reduction = 21,
  ReductionOperation = 22,
  ReshapeOperation = 31
};

enum class CudnnAttribute : int {
  PointwiseMode = 0,
  PointwisePrecision = 1,
  PointwiseAxis = 9,
  HeuristicsMode = 200,
  HeuristicsGraph = 201,
  HeuristicsResults = 202,
  PlanHandle = 400,
  PlanEngineConfig = 401,
  PlanWorkspaceBytes = 402,
  PointwiseOperationMode = 750,
  PointwiseOperationX = 751,
  PointwiseOperationB = 752,
  PointwiseOperationY = 753,
  PointwiseOperationT = 758,
  GraphHandle = 800,
  GraphOperations = 801,
  TensorAlignment = 900,
  TensorDataType = 901,
  TensorDims = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorIsVirtual = 907,
  TensorIsByValue = 908,
  TensorOffsets = 913,
  PackIds = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  MatmulPrecision = 1500,
  MatmulOperationA = 1520,
  MatmulOperationB = 1521,
  MatmulOperationC = 1522,
  MatmulOperationMatmul = 1523,
  MatmulOperationRows = 1525,
  MatmulOperationColumns = 1526,
  MatmulOperationInner = 1527,
  ReductionOperator = 1600,
  ReductionPrecision = 1601,
  ReductionOperationX = 1610,
  ReductionOperationY = 1611,
  ReductionOperationReduction = 1612,
  ReshapeOperationX = 2200,
  ReshapeOperationY = 2201
};

enum class CudnnType : int {
  Handle = 0,
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  VoidPointer = 6,
  HeuristicMode = 8,
  PointwiseMode = 14,
  Descriptor = 15,
  ReductionOperator = 18
};

enum class CudnnDataType : int { Float = 0, Half = 2, Int32 = 4, Bfloat16 = 9, Int64 = 10, Boolean = 11, Fp8E4m3 = 12 };

enum class CudnnPointwise : int {
  Add = 0,
  Multiply = 1,
  Divide = 6,
  Subtract = 9,
  Exponential = 13,
  Logarithm = 15,
  Identity = 21,
  Greater = 302,
  GreaterOrEqual = 303,
  Less = 304,
  And = 400,
  Index = 501,
  Select = 601
};

enum class CudnnReduction : int { Add = 0, Max = 3, LargestMagnitude = 4 };
enum class CudnnHeuristics : int { A = 3 };

struct Cudnn {
  std::size_t (*version)() = nullptr;
  const char* (*errorString)(CudnnStatus) = nullptr;
  void (*lastError)(char* message, std::size_t mostBytes) = nullptr;
  CudnnStatus (*create)(CudnnHandle*) = nullptr;
  CudnnStatus (*destroy)(CudnnHandle) = nullptr;
  CudnnStatus (*setStream)(CudnnHandle, Stream) = nullptr;
  CudnnStatus (*createDescriptor)(CudnnDescriptorType, CudnnDescriptor*) = nullptr;
  CudnnStatus (*destroyDescriptor)(CudnnDescriptor) = nullptr;
  CudnnStatus (*setAttribute)(CudnnDescriptor, CudnnAttribute, CudnnType, std::int64_t count,
                              const void* values) = nullptr;
  CudnnStatus (*getAttribute)(CudnnDescriptor, CudnnAttribute, CudnnType, std::int64_t wanted, std::int64_t* count,
                              void* values) = nullptr;
  CudnnStatus (*finalize)(CudnnDescriptor) = nullptr;
  CudnnStatus (*execute)(CudnnHandle, CudnnDescriptor plan, CudnnDescriptor pack) = nullptr;
};

/// Errors: the library or one of the functions is missing; a sentence with the next step.
Result<Cudnn> loadCudnn();

}  // namespace fuseline::cuda
