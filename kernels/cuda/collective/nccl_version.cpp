// Versions of NCCL.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/nccl.h"

#include <fmt/format.h>

namespace fuseline::cuda {

std::string formatNcclVersion(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<void> checkVersion(const Nccl& nccl) {
  int version = 0;
  if (nccl.version(&version) == NcclStatus::Success && version >= kOldestNccl) return {};
  return Error{fmt::format("{} is NCCL {}, expected {} or newer. Install a newer one, or name its folder in "
                           "LD_LIBRARY_PATH.",
                           nccl.path, formatNcclVersion(version), formatNcclVersion(kOldestNccl)),
               ErrorKind::NoDevice};
}

}  // namespace fuseline::cuda
