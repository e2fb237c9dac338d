// Encoding of all 2^32 float32 patterns, one test a format. The everyday tests take every 211th.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/encode_sweep.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

TEST(EncodeAllFloats, E4M3) { sweepEncoder<E4m3>(kE4M3Definition, 1); }
TEST(EncodeAllFloats, E5M2) { sweepEncoder<E5m2>(kE5M2Definition, 1); }
TEST(EncodeAllFloats, E2M1) { sweepEncoder<E2m1>(kE2M1Definition, 1); }
TEST(EncodeAllFloats, E8M0) { sweepE8M0Encoder(1); }

}  // namespace
}  // namespace fuseline::testing
