// Asks the CPU and the system for AMX.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/tile_registers.h"

#include "kernels/cpu/machine/cpu_info.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fuseline::cpu {

bool mayUseTileRegisters() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  // Linux lends them on request, once for all threads of a process.
  static const bool isPermitted =
      hasAmxGemm() && __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return isPermitted;
#else
  return false;
#endif
}

}  // namespace fuseline::cpu
