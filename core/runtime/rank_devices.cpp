// Shares of one device, or one device each.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rank_devices.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Backends = std::vector<std::shared_ptr<Backend>>;

Error noDevice(const Backend& first, int ranks, const std::string& problem) {
  return {
      fmt::format("--ranks {}: each rank needs a GPU, beginning with {}, but {}", ranks, first.device().id, problem),
      ErrorKind::NoDevice};
}

Result<Backends> sharesOf(Backend& device, const RankPlaces& places) {
  Backends backends(static_cast<std::size_t>(places.ranks));
  for (int rank = 0; rank < places.ranks; ++rank) {
    if (places.own >= 0 && rank != places.own) continue;
    std::shared_ptr<Backend>& backend = backends[static_cast<std::size_t>(rank)];
    backend = device.shareOf(places.ranksOfDevice);
    if (!backend)
      return Error{fmt::format("--ranks {}: {} supports one rank. Use --device cpu or --device cuda.", places.ranks,
                               device.device().id),
                   ErrorKind::NoDevice};
  }
  return backends;
}

/// "cuda:0, cuda:1": the devices of this kind from the first one on.
std::vector<std::string> idsFrom(const BackendRegistry& registry, const std::string& first) {
  const std::string kind = first.substr(0, first.find(':') + 1);
  std::vector<std::string> ids;
  for (const DeviceStatus& device : registry.devices())
    if (device.info.id == first || (!ids.empty() && device.info.id.starts_with(kind))) ids.push_back(device.info.id);
  return ids;
}

}  // namespace

Result<Backends> openRankDevices(const BackendRegistry& registry, const std::shared_ptr<Backend>& first,
                                 const RankPlaces& places) {
  const int ranks = places.ranks;
  if (first->hasHostMemory()) return sharesOf(*first, places);
  if (places.own >= 0)
    return noDevice(
        *first, ranks,
        "ranks that are processes, and predictions for more ranks, run on the CPU. Use --device cpu, or run without a "
        "launcher.");
  const DeviceInfo& info = first->device();
  const std::vector<std::string> ids = idsFrom(registry, info.id);
  const auto found = static_cast<int>(ids.size());
  if (found < ranks)
    return noDevice(*first, ranks,
                    fmt::format("there {} {}. Use --ranks {} or --device cpu; fuse and explain plan for several ranks.",
                                found == 1 ? "is" : "are", std::max(found, 1), std::max(found, 1)));
  Backends backends = {first};
  for (int rank = 1; rank < ranks; ++rank) {
    Result<std::shared_ptr<Backend>> next = registry.open(ids[static_cast<std::size_t>(rank)]);
    if (!next) return next.error();
    const DeviceInfo& other = (*next)->device();
    if (other.architecture != info.architecture)
      return noDevice(
          *first, ranks,
          fmt::format("{} is {}, but {} is {}. One plan needs equal GPUs: select them with CUDA_VISIBLE_DEVICES.",
                      info.id, info.architecture, other.id, other.architecture));
    backends.push_back(std::move(*next));
  }
  return backends;
}

}  // namespace fuseline
