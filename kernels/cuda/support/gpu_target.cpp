// Source: CUDA Programming Guide, "Compute Capability and Binary Compatibility"; nvcc, "GPU Feature List".
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/gpu_target.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cuda {

namespace {

ComputeCapability capabilityOf(int number) { return {number / 10, number % 10}; }

/// One entry of the list.
struct Target {
  ComputeCapability capability;
  char feature = 0;  // 'a': this capability only; 'f': its major number only, in PTX, too
  bool hasPtx = true;

  bool runsOn(ComputeCapability gpu) const {
    if (feature == 'a') return gpu == capability;
    const bool isSameMajor = gpu.major == capability.major && gpu.minor >= capability.minor;
    return isSameMajor || (hasPtx && feature == 0 && gpu >= capability);
  }

  std::string toString() const {
    const std::string newer = hasPtx && feature == 0 ? " and newer" : "";
    return fmt::format("{}.{}{}", capability.major, capability.minor, newer);
  }
};

Target parse(std::string_view text) {
  int number = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest = text.substr(static_cast<std::size_t>(stop - text.data()));
  return {.capability = capabilityOf(number),
          .feature = rest.empty() || rest.front() == '-' ? '\0' : rest.front(),
          .hasPtx = !rest.ends_with("-real")};
}

std::vector<Target> parseList(std::string_view list) {
  std::vector<Target> targets;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(' ', begin), list.size());
    if (end > begin) targets.push_back(parse(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return targets;
}

}  // namespace

Verdict hasKernelsFor(ComputeCapability gpu, std::string_view targets) {
  if (gpu < kOldestGpu)
    return Verdict::no(fmt::format(
        "Its compute capability is {}.{}, but the kernels need {}.{} or newer (bfloat16). Use the device cpu.",
        gpu.major, gpu.minor, kOldestGpu.major, kOldestGpu.minor));
  const std::vector<Target> built = parseList(targets);
  if (std::ranges::any_of(built, [&](const Target& target) { return target.runsOn(gpu); })) return Verdict::yes();
  std::vector<std::string> names;
  for (const Target& target : built) names.push_back(target.toString());
  return Verdict::no(
      fmt::format("Its compute capability is {0}.{1}, but this build has kernels only for {2}. Configure with "
                  "-DFUSELINE_CUDA_ARCHITECTURES={0}{1}, or with all.",
                  gpu.major, gpu.minor, fmt::join(names, ", ")));
}

std::string nvrtcTargetFor(ComputeCapability gpu, std::span<const int> known) {
  int nearest = 0;
  for (const int number : known)
    if (capabilityOf(number) <= gpu) nearest = number;
  if (nearest == 0) return fmt::format("sm_{}{}", gpu.major, gpu.minor);
  return fmt::format("{}_{}", capabilityOf(nearest).major == gpu.major ? "sm" : "compute", nearest);
}

}  // namespace fuseline::cuda
