// Facts about GPUs from the driver's management library (NVML). It needs neither a toolkit nor a CUDA context.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::cuda {

/// The functions of NVML that are called here, declared as in its documentation ("NVML API Reference"): the library
/// comes with the driver, without a header. All of them return 0 for success.
struct Nvml {
  int (*initialize)() = nullptr;
  int (*driverVersion)(char* text, unsigned length) = nullptr;
  int (*numDevices)(unsigned* count) = nullptr;
  int (*deviceByIndex)(unsigned index, void** device) = nullptr;
  int (*deviceByBus)(const char* busId, void** device) = nullptr;
  int (*clock)(void* device, int kind, unsigned* megahertz) = nullptr;
  int (*highestClock)(void* device, int kind, unsigned* megahertz) = nullptr;
  int (*powerUsage)(void* device, unsigned* milliwatts) = nullptr;
  int (*powerLimit)(void* device, unsigned* milliwatts) = nullptr;
  int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*slowdowns)(void* device, unsigned long long* reasons) = nullptr;
  int (*migMode)(void* device, unsigned* current, unsigned* pending) = nullptr;
  /// count: the room in list, and how many there are.
  int (*computeProcesses)(void* device, unsigned* count, void* list) = nullptr;
};

/// nullptr: there is no driver, or it is too old to have them all. Loaded once.
const Nvml* loadNvml();

/// Empty fields: not reported by the driver.
struct GpuConditions {
  std::optional<unsigned> multiprocessorMHz;
  std::optional<unsigned> highestMultiprocessorMHz;
  std::optional<unsigned> memoryMHz;
  std::optional<unsigned> powerMilliwatts;
  std::optional<unsigned> powerLimitMilliwatts;
  std::optional<unsigned> celsius;
  std::optional<unsigned long long> slowdowns;  // bits of nvmlClocksEventReasons
};

/// busId: as CUDA writes it, "0000:1B:00.0".
GpuConditions conditionsOf(const Nvml& nvml, const std::string& busId);

/// Does a process have a context on this GPU? No if NVML does not report it.
bool isInUse(const Nvml& nvml, const std::string& busId);

/// Facts for run files: {"clocks", "multiprocessors 1755 of at most 1980 MHz, memory 2619 MHz"}. Unknown facts are left
/// out.
std::vector<std::pair<std::string, std::string>> factsOf(const GpuConditions& conditions);

/// The driver's release, "580.65.06". If NVML is missing (nullptr) or does not report it, the newest CUDA that the
/// driver supports: "13000".
std::string driverRelease(const Nvml* nvml, int cudaVersion);

struct DriverFacts {
  std::string version;  // "580.65.06"; empty: unknown
  unsigned numGpus = 0;
  unsigned numDivided = 0;  // of these, divided into instances (MIG)
};

DriverFacts driverFactsOf(const Nvml& nvml);

}  // namespace fuseline::cuda
