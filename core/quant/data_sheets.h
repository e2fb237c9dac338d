// DataSheet: NVIDIA's published figures for a GPU. They are not measured here: estimates and roofline lines say so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace fuseline {

/// Peaks without sparsity.
struct DataSheet {
  double memoryGBps = 0.0;
  double f32Gflops = 0.0;   // without tensor cores
  double bf16Gflops = 0.0;  // of tensor cores, as the next
  double fp8Gflops = 0.0;
};

/// H200, SXM form.
inline constexpr DataSheet kH200{.memoryGBps = 4800, .f32Gflops = 67e3, .bf16Gflops = 989e3, .fp8Gflops = 1979e3};

/// device: as the driver names it, "NVIDIA H200". Nullopt: not known here.
std::optional<DataSheet> dataSheetOf(std::string_view device);

}  // namespace fuseline
