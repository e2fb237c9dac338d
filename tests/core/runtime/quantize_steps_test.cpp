// Amaxes as steps record them.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(QuantizeSteps, RecordTheLargestAmaxAndIgnoreNan) {
  std::array<float, 2> history = {0.0F, 9.0F};
  auto* const memory = reinterpret_cast<std::byte*>(history.data());
  for (const float amax : {4.0F, 2.0F, std::nanf("")}) recordAmax(memory, amax);
  EXPECT_EQ(history, (std::array<float, 2>{4.0F, 9.0F}));
}

}  // namespace
}  // namespace fuseline
