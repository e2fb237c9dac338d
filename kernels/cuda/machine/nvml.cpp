// Asks NVML, and puts its answers into words.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/nvml.h"

#include "kernels/cuda/support/shared_library.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cuda {

namespace {

// nvmlClockType_t and nvmlTemperatureSensors_t.
constexpr int kMultiprocessorClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuSensor = 0;
// nvmlReturn_t.
constexpr int kInsufficientSize = 7;

struct Slowdown {
  unsigned long long bit;
  const char* cause;
};

/// nvmlClocksEventReasons, except for those that are no slowdown: idle, and clocks set by a user.
constexpr std::array kSlowdowns = {Slowdown{0x4, "the power limit"}, Slowdown{0x8, "the hardware"},
                                   Slowdown{0x20, "the temperature"}, Slowdown{0x40, "the temperature (in hardware)"},
                                   Slowdown{0x80, "the power supply"}};

bool bind(Symbols symbols, Nvml& found) {
  symbols.find(found.initialize, "nvmlInit_v2");
  symbols.find(found.driverVersion, "nvmlSystemGetDriverVersion");
  symbols.find(found.numDevices, "nvmlDeviceGetCount_v2");
  symbols.find(found.deviceByIndex, "nvmlDeviceGetHandleByIndex_v2");
  symbols.find(found.deviceByBus, "nvmlDeviceGetHandleByPciBusId_v2");
  symbols.find(found.clock, "nvmlDeviceGetClockInfo");
  symbols.find(found.highestClock, "nvmlDeviceGetMaxClockInfo");
  symbols.find(found.powerUsage, "nvmlDeviceGetPowerUsage");
  symbols.find(found.powerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  symbols.find(found.temperature, "nvmlDeviceGetTemperature");
  symbols.find(found.slowdowns, "nvmlDeviceGetCurrentClocksThrottleReasons");
  symbols.find(found.migMode, "nvmlDeviceGetMigMode");
  symbols.find(found.computeProcesses, "nvmlDeviceGetComputeRunningProcesses_v3");
  return symbols.missing().empty();
}

std::optional<Nvml> openNvml() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  Nvml found;
  if (!library || !bind(Symbols(library), found) || found.initialize() != 0) return std::nullopt;
  return found;
}

/// A function's answer about a device.
template <class Value = unsigned, class Function, class... Arguments>
std::optional<Value> ask(Function function, void* device, Arguments... arguments) {
  Value value{};
  return function(device, arguments..., &value) == 0 ? std::optional(value) : std::nullopt;
}

/// "580.65.06"; empty: unknown.
std::string versionOf(const Nvml& nvml) {
  std::array<char, 96> version{};
  return nvml.driverVersion(version.data(), version.size()) == 0 ? version.data() : "";
}

std::string ofAtMost(std::optional<unsigned> most, unsigned divisor) {
  return most ? fmt::format(" of at most {}", *most / divisor) : "";
}

std::string clocksText(const GpuConditions& conditions) {
  std::vector<std::string> parts;
  if (conditions.multiprocessorMHz)
    parts.push_back(fmt::format("multiprocessors {}{} MHz", *conditions.multiprocessorMHz,
                                ofAtMost(conditions.highestMultiprocessorMHz, 1)));
  if (conditions.memoryMHz) parts.push_back(fmt::format("memory {} MHz", *conditions.memoryMHz));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string powerText(const GpuConditions& conditions) {
  if (!conditions.powerMilliwatts) return "";
  return fmt::format("{}{} W", *conditions.powerMilliwatts / 1000, ofAtMost(conditions.powerLimitMilliwatts, 1000));
}

std::string slowdownText(const GpuConditions& conditions) {
  if (!conditions.slowdowns) return "";
  std::vector<std::string> causes;
  for (const Slowdown& slowdown : kSlowdowns)
    if (*conditions.slowdowns & slowdown.bit) causes.emplace_back(slowdown.cause);
  return causes.empty() ? "nothing" : fmt::format("{}", fmt::join(causes, ", "));
}

}  // namespace

const Nvml* loadNvml() {
  static const std::optional<Nvml> nvml = openNvml();
  return nvml ? &*nvml : nullptr;
}

GpuConditions conditionsOf(const Nvml& nvml, const std::string& busId) {
  void* device = nullptr;
  if (nvml.deviceByBus(busId.c_str(), &device) != 0) return {};
  return {.multiprocessorMHz = ask(nvml.clock, device, kMultiprocessorClock),
          .highestMultiprocessorMHz = ask(nvml.highestClock, device, kMultiprocessorClock),
          .memoryMHz = ask(nvml.clock, device, kMemoryClock),
          .powerMilliwatts = ask(nvml.powerUsage, device),
          .powerLimitMilliwatts = ask(nvml.powerLimit, device),
          .celsius = ask(nvml.temperature, device, kGpuSensor),
          .slowdowns = ask<unsigned long long>(nvml.slowdowns, device)};
}

/// Asks without room for any, which is too little for one.
bool isInUse(const Nvml& nvml, const std::string& busId) {
  void* device = nullptr;
  unsigned count = 0;
  return nvml.deviceByBus(busId.c_str(), &device) == 0 &&
         nvml.computeProcesses(device, &count, nullptr) == kInsufficientSize;
}

std::vector<std::pair<std::string, std::string>> factsOf(const GpuConditions& conditions) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"clocks", clocksText(conditions)},
      {"power", powerText(conditions)},
      {"temperature", conditions.celsius ? fmt::format("{} °C", *conditions.celsius) : ""},
      {"throttled by", slowdownText(conditions)}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

std::string driverRelease(const Nvml* nvml, int cudaVersion) {
  const std::string version = nvml ? versionOf(*nvml) : "";
  return version.empty() ? fmt::format("{}", cudaVersion) : version;
}

DriverFacts driverFactsOf(const Nvml& nvml) {
  DriverFacts facts{.version = versionOf(nvml)};
  if (nvml.numDevices(&facts.numGpus) != 0) facts.numGpus = 0;
  for (unsigned index = 0; index < facts.numGpus; ++index) {
    void* device = nullptr;
    unsigned current = 0;
    unsigned pending = 0;
    if (nvml.deviceByIndex(index, &device) == 0 && nvml.migMode(device, &current, &pending) == 0)
      facts.numDivided += current;
  }
  return facts;
}

}  // namespace fuseline::cuda
