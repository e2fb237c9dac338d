// Compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/model/cross_entropy_functions.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/model/cross_entropy_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/elementwise/vector_math-inl.h"

#ifndef FUSELINE_LOGIT_FUNCTION_TABLE
#define FUSELINE_LOGIT_FUNCTION_TABLE
namespace fuseline::cpu {

using LogitFunctionTable = std::array<LogitFunctions, 3>;  // by dtype

}  // namespace fuseline::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

/// body(vector, number of its elements that count); the others are 0.
template <class T, class Body>
HWY_INLINE void forLogits(const T* x, std::size_t cols, Body body) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= cols; i += lanes) body(load(x + i), lanes);
  if (i < cols) body(loadTail(x + i, cols - i), cols - i);
}

template <class T>
LogitSums logitSums(const void* data, std::size_t cols) {
  const T* const x = static_cast<const T*>(data);
  V most = hn::Set(D(), -__builtin_inff());
  V sum = hn::Zero(D());
  forLogits(x, cols, [&](V logits, std::size_t count) HWY_ATTR {
    most = hn::Max(most, hn::IfThenElse(hn::FirstN(D(), count), logits, most));
    sum = hn::Add(sum, logits);
  });
  LogitSums result{.max = hn::GetLane(hn::MaxOfLanes(D(), most)), .sum = hn::GetLane(hn::SumOfLanes(D(), sum))};
  const V shift = hn::Set(D(), result.max);
  V exps = hn::Zero(D());
  forLogits(x, cols, [&](V logits, std::size_t count) HWY_ATTR {
    const V e = keepNan(logits, expWide(hn::Sub(logits, shift)));
    exps = hn::Add(exps, hn::IfThenElseZero(hn::FirstN(D(), count), e));
  });
  result.expSum = hn::GetLane(hn::SumOfLanes(D(), exps));
  return result;
}

template <class T>
void logitGradient(const void* data, std::size_t cols, float lse, float factor, float shift, void* gradient) {
  const T* const x = static_cast<const T*>(data);
  T* const dx = static_cast<T*>(gradient);
  const V lseOfAll = hn::Set(D(), lse);
  const V factorOfAll = hn::Set(D(), factor);
  const V shiftOfAll = hn::Set(D(), shift);
  std::size_t i = 0;
  forLogits(x, cols, [&](V logits, std::size_t count) HWY_ATTR {
    const V e = keepNan(logits, expWide(hn::Sub(logits, lseOfAll)));
    const V result = hn::MulSub(factorOfAll, e, shiftOfAll);
    if (count == hn::Lanes(D()))
      store(result, dx + i);
    else
      storeTail(result, dx + i, count);
    i += count;
  });
}

template <class T>
LogitFunctions logitFunctionsFor() {
  return {.sums = logitSums<T>, .gradient = logitGradient<T>};
}

LogitFunctionTable makeLogitTable() {
  return {logitFunctionsFor<float>(), logitFunctionsFor<F16>(), logitFunctionsFor<Bf16>()};
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(makeLogitTable);

const LogitFunctions& logitFunctions(DType dtype) {
  static const LogitFunctionTable table = HWY_DYNAMIC_DISPATCH(makeLogitTable)();
  return table[static_cast<std::size_t>(dtype)];
}

}  // namespace fuseline::cpu
#endif
