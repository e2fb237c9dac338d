// The part of a kernel's name that tells it from others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

#include <string_view>

namespace fuseline::ui {

/// "rmsNorm<bf16, 8>" of "void fuseline::device::rmsNorm<bf16, 8>(...)": the end of a long name says more.
QString shortKernelName(std::string_view name);

}  // namespace fuseline::ui
