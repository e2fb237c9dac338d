// Compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/model/adamw_functions.h"

#include <array>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/model/adamw_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/elementwise/vector_math-inl.h"

#ifndef FUSELINE_ADAMW_FUNCTION_TABLE
#define FUSELINE_ADAMW_FUNCTION_TABLE
namespace fuseline::cpu {

/// By the parameter's dtype; with a gradient of that dtype, and in float32.
using AdamWFunctionTable = std::array<std::array<AdamWFunction, 2>, 3>;
using SquaresFunctionTable = std::array<SquaresFunction, 3>;

}  // namespace fuseline::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

/// All lanes of a vector, or the first elements at the end.
struct WholeLanes {
  template <class T>
  HWY_INLINE V read(const T* from) const {
    return load(from);
  }
  template <class T>
  HWY_INLINE void write(V value, T* to) const {
    store(value, to);
  }
};
struct FirstLanes {
  std::size_t count;

  template <class T>
  HWY_INLINE V read(const T* from) const {
    return loadTail(from, count);
  }
  template <class T>
  HWY_INLINE void write(V value, T* to) const {
    storeTail(value, to, count);
  }
};

template <class P, class G, class Lanes>
HWY_INLINE void updateLanes(const AdamWRange& range, std::size_t i, const AdamWTerms<float>& terms,
                            const AdamWCorrections<float>& corrections, Lanes lanes) {
  const D d;
  G* const gradients = static_cast<G*>(range.gradients) + i;
  const V g = hn::Mul(hn::Set(d, corrections.gradientScale), lanes.read(gradients));
  V m = lanes.read(range.expAvg + i);
  V v = lanes.read(range.expAvgSq + i);
  V w = lanes.read(range.weights + i);
  m = hn::MulAdd(hn::Set(d, terms.beta1Rest), hn::Sub(g, m), m);
  v = hn::MulAdd(hn::Set(d, terms.beta2), v, hn::Mul(hn::Set(d, terms.beta2Rest), hn::Mul(g, g)));
  const V root = hn::Div(hn::Sqrt(v), hn::Set(d, corrections.rootCorrection2));
  const V direction = hn::Div(m, hn::Add(root, hn::Set(d, terms.eps)));
  w = hn::NegMulAdd(hn::Set(d, corrections.stepSize), direction, hn::Mul(hn::Set(d, corrections.decay), w));
  lanes.write(m, range.expAvg + i);
  lanes.write(v, range.expAvgSq + i);
  lanes.write(w, range.weights + i);
  if constexpr (!std::is_same_v<P, float>) lanes.write(w, static_cast<P*>(range.rounded) + i);
  if (range.clears) lanes.write(hn::Zero(d), gradients);
}

template <class P, class G>
void update(const AdamWRange& range, const AdamWTerms<float>& terms, const AdamWCorrections<float>& corrections) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= range.count; i += lanes) updateLanes<P, G>(range, i, terms, corrections, WholeLanes());
  if (i < range.count) updateLanes<P, G>(range, i, terms, corrections, FirstLanes{range.count - i});
}

/// Loads past the end are 0.
template <class G>
float squares(const void* from, std::size_t count) {
  const D d;
  const auto* const gradients = static_cast<const G*>(from);
  const std::size_t lanes = hn::Lanes(d);
  V sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V g = load(gradients + i);
    sum = hn::MulAdd(g, g, sum);
  }
  if (i < count) {
    const V g = loadTail(gradients + i, count - i);
    sum = hn::MulAdd(g, g, sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

SquaresFunctionTable makeSquaresTable() { return {squares<float>, squares<F16>, squares<Bf16>}; }

AdamWFunctionTable makeAdamWTable() {
  return {{{update<float, float>, update<float, float>},
           {update<F16, F16>, update<F16, float>},
           {update<Bf16, Bf16>, update<Bf16, float>}}};
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(makeAdamWTable);

AdamWFunction adamWFunction(DType parameter, DType gradient) {
  static const AdamWFunctionTable table = HWY_DYNAMIC_DISPATCH(makeAdamWTable)();
  return table[static_cast<std::size_t>(parameter)][gradient == DType::F32 ? 1 : 0];
}

HWY_EXPORT(makeSquaresTable);

SquaresFunction squaresFunction(DType gradient) {
  static const SquaresFunctionTable table = HWY_DYNAMIC_DISPATCH(makeSquaresTable)();
  return table[static_cast<std::size_t>(gradient)];
}

}  // namespace fuseline::cpu
#endif
