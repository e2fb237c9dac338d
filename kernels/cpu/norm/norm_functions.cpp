// The norms' row loops, compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_functions.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm/norm_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/elementwise/vector_math-inl.h"

#ifndef FUSELINE_NORM_FUNCTION_TABLE
#define FUSELINE_NORM_FUNCTION_TABLE
namespace fuseline::cpu {

struct NormFunctionTable {
  std::array<std::array<NormForwardFunction, 3>, 3> forward;  // [kind][dtype]
  std::array<std::array<NormBackwardFunction, 3>, 3> backward;
  std::array<AddFunction, 3> add;
};

}  // namespace fuseline::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

/// Four accumulators hide the latency of the adds.
struct RowSum {
  V parts[4];

  // Written out: an implicit constructor would not be compiled for this instruction set.
  HWY_INLINE RowSum() {
    for (V& part : parts) part = hn::Zero(D());
  }

  HWY_INLINE float total() const {
    const V sum = hn::Add(hn::Add(parts[0], parts[1]), hn::Add(parts[2], parts[3]));
    return hn::GetLane(hn::SumOfLanes(D(), sum));
  }
};

/// Calls body(vector index modulo 4, loader) for whole vectors and once for the tail. The loader reads the same
/// position of any row; beyond the end it returns zeros, so that body may add to sums.
template <class Body>
HWY_INLINE void forRow(std::size_t cols, Body body) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + 4 * lanes <= cols; i += 4 * lanes) {
    body(0, [i](const auto* row) HWY_ATTR { return load(row + i); });
    body(1, [i, lanes](const auto* row) HWY_ATTR { return load(row + i + lanes); });
    body(2, [i, lanes](const auto* row) HWY_ATTR { return load(row + i + 2 * lanes); });
    body(3, [i, lanes](const auto* row) HWY_ATTR { return load(row + i + 3 * lanes); });
  }
  for (; i + lanes <= cols; i += lanes) body(0, [i](const auto* row) HWY_ATTR { return load(row + i); });
  if (i < cols) body(0, [i, cols](const auto* row) HWY_ATTR { return loadTail(row + i, cols - i); });
}

/// out = body(loader, storer) for whole vectors and once for the tail; the storer writes other rows at the same place.
/// out may be null.
template <class T, class Body>
HWY_INLINE void mapRow(T* out, std::size_t cols, Body body) {
  const std::size_t lanes = hn::Lanes(D());
  const auto at = [&](std::size_t i) HWY_ATTR {
    return body([i](const auto* row) HWY_ATTR { return load(row + i); },
                [i](V v, auto* row) HWY_ATTR { store(v, row + i); });
  };
  std::size_t i = 0;
  for (; i + 2 * lanes <= cols; i += 2 * lanes) {
    const V first = at(i);
    const V second = at(i + lanes);
    if (out) storePair(first, second, out + i);
  }
  for (; i + lanes <= cols; i += lanes) {
    const V value = at(i);
    if (out) store(value, out + i);
  }
  if (i == cols) return;
  const V value = body([i, cols](const auto* row) HWY_ATTR { return loadTail(row + i, cols - i); },
                       [i, cols](V v, auto* row) HWY_ATTR { storeTail(v, row + i, cols - i); });
  if (out) storeTail(value, out + i, cols - i);
}

template <class T>
HWY_INLINE float meanOfRow(const T* x, std::size_t cols) {
  RowSum sum;
  forRow(cols, [&](int part, auto get) HWY_ATTR { sum.parts[part] = hn::Add(sum.parts[part], get(x)); });
  return sum.total() / static_cast<float>(cols);
}

/// sum((x - mean)^2)
template <class T>
HWY_INLINE float sumOfSquares(const T* x, float mean, std::size_t cols) {
  const V shift = hn::Set(D(), mean);
  const std::size_t tail = cols % hn::Lanes(D());
  RowSum sum;
  forRow(cols - tail, [&](int part, auto get) HWY_ATTR {
    const V centred = hn::Sub(get(x), shift);
    sum.parts[part] = hn::MulAdd(centred, centred, sum.parts[part]);
  });
  if (tail != 0) {  // the padding must not count as (0 - mean)^2
    const V centred = hn::Sub(loadTail(x + cols - tail, tail), shift);
    const V counted = hn::IfThenElseZero(hn::FirstN(D(), tail), centred);
    sum.parts[0] = hn::MulAdd(counted, counted, sum.parts[0]);
  }
  return sum.total();
}

/// Divisor of the sums over a row.
template <NormKind kKind>
HWY_INLINE float divisor(std::size_t cols) {
  return kKind == NormKind::L2 ? 1.0F : static_cast<float>(cols);
}

/// gamma * x, or x where the norm has no gamma.
template <NormKind kKind, class Get>
HWY_INLINE V timesGamma(Get get, const float* gamma, V x) {
  return kKind == NormKind::L2 ? x : hn::Mul(get(gamma), x);
}

/// Elements from one row to the next. row: 0 where rows follow each other.
HWY_INLINE std::int64_t strideOf(std::int64_t row, std::int64_t cols) { return row > 0 ? row : cols; }

template <class T, NormKind kKind>
void normForward(const NormForwardRows& task, std::int64_t firstRow, std::int64_t lastRow) {
  constexpr bool kIsLayer = kKind == NormKind::Layer;
  const auto cols = static_cast<std::size_t>(task.cols);
  for (std::int64_t row = firstRow; row < lastRow; ++row) {
    const T* const x = static_cast<const T*>(task.x) + row * strideOf(task.rowOfX, task.cols);
    T* const y = static_cast<T*>(task.y) + row * task.cols;
    const float mean = kIsLayer ? meanOfRow(x, cols) : 0.0F;
    const float rstd = 1.0F / __builtin_sqrtf(sumOfSquares(x, mean, cols) / divisor<kKind>(cols) + task.eps);
    if (task.mean) task.mean[row] = mean;
    if (task.rstd) task.rstd[row] = rstd;
    const V shift = hn::Set(D(), mean);
    const V scale = hn::Set(D(), rstd);
    mapRow(y, cols, [&](auto get, auto) HWY_ATTR {
      const V normal = hn::Mul(kIsLayer ? hn::Sub(get(x), shift) : get(x), scale);
      if (kIsLayer) return hn::MulAdd(normal, get(task.gamma), get(task.beta));
      return timesGamma<kKind>(get, task.gamma, normal);
    });
  }
}

/// Means over a row, or sums, of q xh and of q.
struct RowMeans {
  float qxh = 0.0F;
  float q = 0.0F;
};

template <class T, NormKind kKind>
HWY_INLINE RowMeans meansOf(const T* x, const T* dy, const float* gamma, float mean, float rstd, std::size_t cols) {
  const V shift = hn::Set(D(), mean);
  const V scale = hn::Set(D(), rstd);
  RowSum sumQxh;
  RowSum sumQ;
  forRow(cols, [&](int part, auto get) HWY_ATTR {
    const V q = timesGamma<kKind>(get, gamma, get(dy));  // zero in the padding
    const V centred = kKind == NormKind::Layer ? hn::Sub(get(x), shift) : get(x);
    sumQxh.parts[part] = hn::MulAdd(q, hn::Mul(centred, scale), sumQxh.parts[part]);
    if (kKind == NormKind::Layer) sumQ.parts[part] = hn::Add(sumQ.parts[part], q);
  });
  const float count = divisor<kKind>(cols);
  return {.qxh = sumQxh.total() / count, .q = kKind == NormKind::Layer ? sumQ.total() / count : 0.0F};
}

template <class T, NormKind kKind>
void normBackward(const NormBackwardRows& task, std::int64_t firstRow, std::int64_t lastRow) {
  constexpr bool kIsLayer = kKind == NormKind::Layer;
  const auto cols = static_cast<std::size_t>(task.cols);
  for (std::int64_t row = firstRow; row < lastRow; ++row) {
    const T* const x = static_cast<const T*>(task.x) + row * strideOf(task.rowOfX, task.cols);
    const T* const dy = static_cast<const T*>(task.dy) + row * task.cols;
    const T* const extra = task.extra ? static_cast<const T*>(task.extra) + row * task.cols : nullptr;
    T* const dx = task.dx ? static_cast<T*>(task.dx) + row * strideOf(task.rowOfDx, task.cols) : nullptr;
    const float mean = kIsLayer ? task.mean[row] : 0.0F;
    const float rstd = task.rstd[row];
    const RowMeans means = dx ? meansOf<T, kKind>(x, dy, task.gamma, mean, rstd, cols) : RowMeans{};
    const V shift = hn::Set(D(), mean);
    const V scale = hn::Set(D(), rstd);
    const V meanQxh = hn::Set(D(), means.qxh);
    const V meanQ = hn::Set(D(), means.q);
    mapRow(dx, cols, [&](auto get, auto put) HWY_ATTR {
      const V grad = get(dy);
      const V normal = hn::Mul(kIsLayer ? hn::Sub(get(x), shift) : get(x), scale);
      if (task.dgamma) put(hn::MulAdd(grad, normal, get(task.dgamma)), task.dgamma);
      if (task.dbeta) put(hn::Add(grad, get(task.dbeta)), task.dbeta);
      V centred = hn::NegMulAdd(meanQxh, normal, timesGamma<kKind>(get, task.gamma, grad));
      if (kIsLayer) centred = hn::Sub(centred, meanQ);
      return extra ? hn::MulAdd(scale, centred, get(extra)) : hn::Mul(scale, centred);
    });
  }
}

template <class T>
void addElements(const void* a, const void* b, void* sum, std::size_t count) {
  mapRow(static_cast<T*>(sum), count, [&](auto get, auto) HWY_ATTR {
    return hn::Add(get(static_cast<const T*>(a)), get(static_cast<const T*>(b)));
  });
}

template <NormKind kKind>
std::array<NormForwardFunction, 3> forwardFunctions() {
  return {normForward<float, kKind>, normForward<F16, kKind>, normForward<Bf16, kKind>};
}

template <NormKind kKind>
std::array<NormBackwardFunction, 3> backwardFunctions() {
  return {normBackward<float, kKind>, normBackward<F16, kKind>, normBackward<Bf16, kKind>};
}

NormFunctionTable makeNormTable() {
  return {.forward = {forwardFunctions<NormKind::Rms>(), forwardFunctions<NormKind::Layer>(),
                      forwardFunctions<NormKind::L2>()},
          .backward = {backwardFunctions<NormKind::Rms>(), backwardFunctions<NormKind::Layer>(),
                       backwardFunctions<NormKind::L2>()},
          .add = {addElements<float>, addElements<F16>, addElements<Bf16>}};
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(makeNormTable);

namespace {

const NormFunctionTable& normTable() {
  static const NormFunctionTable table = HWY_DYNAMIC_DISPATCH(makeNormTable)();
  return table;
}

}  // namespace

AddFunction addFunction(DType dtype) { return normTable().add[static_cast<std::size_t>(dtype)]; }

NormForwardFunction normForwardFunction(NormKind kind, DType dtype) {
  return normTable().forward[static_cast<std::size_t>(kind)][static_cast<std::size_t>(dtype)];
}

NormBackwardFunction normBackwardFunction(NormKind kind, DType dtype) {
  return normTable().backward[static_cast<std::size_t>(kind)][static_cast<std::size_t>(dtype)];
}

}  // namespace fuseline::cpu
#endif
