// NVIDIA's data sheets of its GPUs of compute capability 9.0.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/data_sheets.h"

#include <algorithm>
#include <array>

namespace fuseline {

namespace {

struct NamedSheet {
  std::string_view device;
  DataSheet sheet;
};

constexpr std::array kSheets = {
    NamedSheet{"NVIDIA H200", kH200},
    NamedSheet{"NVIDIA H100 80GB HBM3",
               {.memoryGBps = 3350, .f32Gflops = 67e3, .bf16Gflops = 989e3, .fp8Gflops = 1979e3}},
    NamedSheet{"NVIDIA H100 PCIe", {.memoryGBps = 2000, .f32Gflops = 51e3, .bf16Gflops = 756e3, .fp8Gflops = 1513e3}},
};

}  // namespace

std::optional<DataSheet> dataSheetOf(std::string_view device) {
  const auto found = std::ranges::find(kSheets, device, &NamedSheet::device);
  return found == kSheets.end() ? std::nullopt : std::optional(found->sheet);
}

}  // namespace fuseline
