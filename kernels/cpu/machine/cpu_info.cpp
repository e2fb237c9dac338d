// Reads /proc, /sys and the libraries' own dispatch decisions.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/cpu_info.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <hwy/targets.h>
#include <sched.h>
#include <unistd.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace fuseline::cpu {

namespace {

std::string firstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// "core_cpus_list" is the same text for the hardware threads of one core.
int physicalCoresOf(const cpu_set_t& allowed) {
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    const std::string siblings = firstLine(fmt::format("/sys/devices/system/cpu/cpu{}/topology/core_cpus_list", cpu));
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

/// cgroup v2: "max 100000" or "QUOTA PERIOD". A large number when there is no limit.
double cgroupCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0.0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0.0) return 1e9;
  return std::strtod(quota.c_str(), nullptr) / period;
}

std::string cpuModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

/// Instruction sets have the bits of those that they contain.
bool gemmsUse(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

std::string gemmInstructionSet() {
  using dnnl::cpu_isa;
  constexpr std::pair<cpu_isa, const char*> kFromTheBest[] = {
      {cpu_isa::avx512_core_amx, "avx512_amx"},
      {cpu_isa::avx512_core_bf16, "avx512_bf16"},
      {cpu_isa::avx512_core_vnni, "avx512_vnni"},
      {cpu_isa::avx512_core, "avx512"},
      {cpu_isa::avx2_vnni, "avx2_vnni"},
      {cpu_isa::avx2, "avx2"},
      {cpu_isa::avx, "avx"},
      {cpu_isa::sse41, "sse4.1"},
  };
  for (const auto& [isa, name] : kFromTheBest)
    if (gemmsUse(isa)) return name;
  return "generic";
}

/// The best of the targets that the loops were compiled for.
std::string loopInstructionSet() {
  const std::int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // better targets have lower bits
}

std::string dnnlVersion() {
  const dnnl_version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::int64_t physicalMemoryBytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace

int availableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const double quota = std::floor(cgroupCores());
  return std::max(1, static_cast<int>(std::min<double>(physicalCoresOf(allowed), quota)));
}

int defaultThreads() {
  const char* wished = std::getenv("OMP_NUM_THREADS");
  const int threads = wished ? std::atoi(wished) : 0;
  return threads > 0 ? threads : availableCores();
}

std::int64_t lastLevelCacheBytes() {
  constexpr std::int64_t kUsualBytes = std::int64_t{32} << 20;
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : kUsualBytes;
}

bool hasNativeBf16Gemm() { return gemmsUse(dnnl::cpu_isa::avx512_core_bf16); }

bool hasAmxGemm() { return gemmsUse(dnnl::cpu_isa::avx512_core_amx); }

DeviceInfo describeCpu(int threads) {
  DeviceInfo info;
  info.id = "cpu";
  info.name = fmt::format("{}, {} thread{}", cpuModelName(), threads, threads == 1 ? "" : "s");
  info.architecture = gemmInstructionSet();
  info.memoryBytes = physicalMemoryBytes();
  info.details = {{"cpu", cpuModelName()},
                  {"threads", std::to_string(threads)},
                  {"gemm", "oneDNN " + dnnlVersion() + ", " + gemmInstructionSet()},
                  {"loops", "Highway, " + loopInstructionSet()},
                  {"bf16 products", hasNativeBf16Gemm() ? "native" : "through float32"}};
  return info;
}

}  // namespace fuseline::cpu
