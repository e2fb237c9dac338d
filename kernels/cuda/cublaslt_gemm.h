// Matrix products through cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stream.h"

#include <memory>

namespace fuseline::cuda {

/// The library is looked for at the first product, so that pipelines without any run where it is not installed.
std::unique_ptr<GemmLibrary> makeCublasLtGemms(Stream stream);

}  // namespace fuseline::cuda
