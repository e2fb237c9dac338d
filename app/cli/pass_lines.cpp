// The lines were drawn before anything was measured; what is beyond one is a thing to look into.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pass_lines.h"

namespace fuseline::cli {

namespace {

constexpr double kMemoryShare = 0.85;
/// Also of those who quantize what they make: transposed copies are written across rows.
constexpr double kQuantizingShare = 0.75;
/// The measured peak is a GEMM of 8192 x 8192 x 8192; bench_cuda_products shows how near an algorithm is to the best.
constexpr double kProductShare = 0.90;
constexpr double kCeilingShare = 0.95;
constexpr double kTraceCost = 0.02;

}  // namespace

double wantedShare(const StepRecord& step, bool isMemoryBound) {
  if (!isMemoryBound) return kProductShare;
  return step.kernel == "quantize" || !step.absorbs.empty() ? kQuantizingShare : kMemoryShare;
}

bool isNearCeiling(const RatioStats& speedup, double ceiling) { return speedup.median >= kCeilingShare * ceiling; }

bool isCheapTrace(double tracedNs, double plainNs) { return tracedNs <= (1.0 + kTraceCost) * plainNs; }

}  // namespace fuseline::cli
