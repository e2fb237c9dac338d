// Formats and extents that each GPU multiplies.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_refusal.h"

#include "core/tensor/scaling.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

constexpr int kHopper = 9;
constexpr int kBlackwell = 10;

bool isOneOf(Scaling scaling, std::initializer_list<Scaling> scalings) {
  return std::ranges::find(scalings, scaling) != scalings.end();
}

/// Required alignment of extents, in elements, for every algorithm to be available.
std::int64_t alignmentOf(const GemmProblem& problem) {
  constexpr std::int64_t kPlain = 8;
  if (!problem.aCodes) return kPlain;
  return std::max(traitsOf(problem.aCodes->scaling).contractedMultiple,
                  traitsOf(problem.bCodes->scaling).contractedMultiple);
}

std::string remedyFor(const GemmProblem& problem, int computeMajor) {
  const Scaling scaling = problem.aCodes ? problem.aCodes->scaling : Scaling::PerTensor;
  if (isOneOf(scaling, {Scaling::Block1x128, Scaling::Block128x128}) && computeMajor > kHopper)
    return "It supports such blocks only on GPUs of compute capability 9.x; on newer GPUs they become MXFP8 blocks.";
  if (isOneOf(scaling, {Scaling::Mx1x32, Scaling::Mx32x32, Scaling::Nv1x16, Scaling::Nv16x16}) &&
      computeMajor < kBlackwell)
    return "It supports such blocks only on compute capability 10.0 and newer. Choose Float8BlockScaling, or a "
           "recipe with one scale per tensor.";
  if (!problem.aCodes) return fmt::format("Make its sizes multiples of {}.", alignmentOf(problem));
  return fmt::format(
      "Make its sizes multiples of {}, choose another recipe, or install cuBLASLt of CUDA 12.9 or newer (blocks of "
      "128).",
      alignmentOf(problem));
}

}  // namespace

std::string describe(const GemmProblem& problem) {
  std::string size = fmt::format("{} x {} x {}", problem.m, problem.n, problem.k);
  if (problem.batch.count > 1) size += fmt::format(" ({} of them)", problem.batch.count);
  if (!problem.aCodes) return fmt::format("{} in {}", size, dtypeName(problem.factorType));
  const auto codes = [](const FactorCodes& factor) {
    return fmt::format("{} ({})", formatName(factor.format), traitsOf(factor.scaling).name);
  };
  return fmt::format("{} of {} and {} to {}", size, codes(*problem.aCodes), codes(*problem.bCodes),
                     problem.cFormat ? formatName(*problem.cFormat) : dtypeName(problem.cType));
}

std::string refusalOf(const GemmProblem& problem, int computeMajor) {
  return fmt::format("cuBLASLt has no algorithm for the GEMM {} on this GPU. {}", describe(problem),
                     remedyFor(problem, computeMajor));
}

}  // namespace fuseline::cuda
