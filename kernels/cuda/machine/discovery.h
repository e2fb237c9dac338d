// The CUDA devices of this machine, or the reason why there is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/machine/nvml.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// The values of cudaError_t with a message of their own; named here so that the messages need no toolkit.
inline constexpr int kSuccess = 0;
inline constexpr int kStubLibrary = 34;
inline constexpr int kMemoryAllocation = 2;
inline constexpr int kInsufficientDriver = 35;
inline constexpr int kDevicesUnavailable = 46;
inline constexpr int kNoDevice = 100;
inline constexpr int kSystemNotReady = 802;
inline constexpr int kSystemDriverMismatch = 803;

/// The values of cudaComputeMode that keep processes out.
inline constexpr int kProhibited = 2;
inline constexpr int kExclusiveProcess = 3;

/// The CUDA runtime's answers to device discovery.
struct DiscoveryFacts {
  int errorCode = kSuccess;  // a cudaError_t; 0 is success
  std::string errorText;     // the runtime's own words
  int numDevices = 0;
  int driverVersion = 0;                      // newest CUDA that the driver supports, such as 13000; 0: no driver
  int runtimeVersion = 0;                     // the CUDA that this module was built with
  DriverFacts driver;                         // from its management library; empty: nothing
  std::optional<std::string> visibleDevices;  // CUDA_VISIBLE_DEVICES, if it is set
};

/// One sentence for a person: why these facts leave no usable device, and the next step.
std::string explainNoDevice(const DiscoveryFacts& facts);

/// The same for an existing GPU without a context. errorText: the runtime's message.
std::string explainNoContext(int errorCode, const std::string& errorText);

/// "580.65.06, supports CUDA 13.0".
std::string driverText(const DiscoveryFacts& facts);

/// "13.0" from 13000.
std::string formatCudaVersion(int version);

/// Whether one more process may use a GPU. computeMode: a cudaComputeMode. isInUse: another process uses it.
Verdict isOpen(int computeMode, bool isInUse);

/// The device's id in NVML; empty: unknown.
std::string busIdOf(int device);

/// The devices in the order of the runtime; exactly one entry "cuda" with its reason if there is none. Creates no CUDA
/// context, so it uses no device memory.
std::vector<DeviceStatus> discoverDevices();

}  // namespace fuseline::cuda
