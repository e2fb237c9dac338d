// Text of the answers of a driver's management library; its functions are stubs with given answers.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/nvml.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fuseline::cuda {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED

/// Two GPUs, the second divided; the first cannot say how warm it is.
Nvml toldNvml() {
  static int devices[2];
  Nvml nvml;
  nvml.driverVersion = [](char* text, unsigned length) {
    std::strncpy(text, "580.65.06", length);
    return 0;
  };
  nvml.numDevices = [](unsigned* count) {
    *count = 2;
    return 0;
  };
  nvml.deviceByIndex = [](unsigned index, void** device) {
    *device = &devices[index];
    return 0;
  };
  nvml.deviceByBus = [](const char* busId, void** device) {
    *device = &devices[0];
    return std::strcmp(busId, "0000:1B:00.0") == 0 ? 0 : kNotSupported;
  };
  // nvmlClockType_t: NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2.
  nvml.clock = [](void*, int kind, unsigned* megahertz) {
    *megahertz = kind == 1 ? 1755 : kind == 2 ? 2619 : 0;
    return 0;
  };
  nvml.highestClock = [](void*, int, unsigned* megahertz) {
    *megahertz = 1980;
    return 0;
  };
  nvml.powerUsage = [](void*, unsigned* milliwatts) {
    *milliwatts = 412'345;
    return 0;
  };
  nvml.powerLimit = [](void*, unsigned* milliwatts) {
    *milliwatts = 700'000;
    return 0;
  };
  nvml.temperature = [](void*, int, unsigned*) { return kNotSupported; };
  nvml.slowdowns = [](void*, unsigned long long* reasons) {
    *reasons = 0x4 | 0x20;  // nvmlClocksEventReasonSwPowerCap, nvmlClocksEventReasonSwThermalSlowdown
    return 0;
  };
  nvml.migMode = [](void* device, unsigned* current, unsigned*) {
    *current = device == &devices[1];
    return 0;
  };
  nvml.computeProcesses = [](void*, unsigned* count, void*) {
    *count = 0;
    return 0;
  };
  return nvml;
}

TEST(Nvml, SaysWhatAGpuIsLikeAndLeavesOutWhatItDoesNotKnow) {
  EXPECT_EQ(factsOf(conditionsOf(toldNvml(), "0000:1B:00.0")),
            (Facts{{"clocks", "multiprocessors 1755 of at most 1980 MHz, memory 2619 MHz"},
                   {"power", "412 of at most 700 W"},
                   {"throttled by", "the power limit, the temperature"}}));
}

TEST(Nvml, SaysNothingOfAGpuThatItDoesNotKnow) {
  EXPECT_EQ(factsOf(conditionsOf(toldNvml(), "0000:FF:00.0")), Facts());
}

/// Bits 0x1 and 0x2: idle, and clocks that an application requested.
TEST(Nvml, CallsNeitherIdlenessNorChosenClocksASlowdown) {
  EXPECT_EQ(factsOf({.slowdowns = 0x3}), (Facts{{"throttled by", "nothing"}}));
}

/// Two releases may support the same CUDA, and choose other algorithms.
TEST(Nvml, TellsReleasesOfADriverApart) {
  Nvml nvml = toldNvml();
  EXPECT_EQ(driverRelease(&nvml, 13000), "580.65.06");
  nvml.driverVersion = [](char*, unsigned) { return kNotSupported; };
  EXPECT_EQ(driverRelease(&nvml, 13000), "13000");
  EXPECT_EQ(driverRelease(nullptr, 13000), "13000");
}

/// nvml.h of nvmlDeviceGetComputeRunningProcesses: NVML_ERROR_INSUFFICIENT_SIZE (7) where there are more than there is
/// room for, which may be none.
TEST(Nvml, KnowsWhetherAProcessUsesAGpu) {
  Nvml nvml = toldNvml();
  EXPECT_FALSE(isInUse(nvml, "0000:1B:00.0"));
  nvml.computeProcesses = [](void*, unsigned* count, void* list) {
    EXPECT_EQ(*count, 0u);
    EXPECT_EQ(list, nullptr);
    *count = 1;
    return 7;
  };
  EXPECT_TRUE(isInUse(nvml, "0000:1B:00.0"));
  EXPECT_FALSE(isInUse(nvml, "0000:FF:00.0")) << "not known";
  nvml.computeProcesses = [](void*, unsigned*, void*) { return kNotSupported; };
  EXPECT_FALSE(isInUse(nvml, "0000:1B:00.0"));
}

TEST(Nvml, CountsGpusAndThoseThatAreDivided) {
  const DriverFacts facts = driverFactsOf(toldNvml());
  EXPECT_EQ(facts.version, "580.65.06");
  EXPECT_EQ(facts.numGpus, 2u);
  EXPECT_EQ(facts.numDivided, 1u);
}

}  // namespace
}  // namespace fuseline::cuda
