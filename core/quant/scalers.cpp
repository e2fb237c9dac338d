// Which family a scaling belongs to.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scalers.h"

namespace fuseline {

const ScalingFamily& familyOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::Block1x128:
    case Scaling::Block128x128: return scaling_families::fp8Block;
    case Scaling::Mx1x32:
    case Scaling::Mx32x32: return scaling_families::mxfp8;
    case Scaling::Nv1x16:
    case Scaling::Nv16x16:
    case Scaling::NvRow1x16: return scaling_families::nvfp4;
    case Scaling::PerTensor: break;
  }
  return scaling_families::perTensor;
}

}  // namespace fuseline
