// Shared code of the norm kernels: how the threads of a row read it, sums over it, and the result of one packet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/norm_data.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// For which element types a kernel was compiled: for any.
struct AnyElements {
  static constexpr bool areNarrow = false;
  static constexpr Element kHeldAs = Element::F32;
  static constexpr bool fit(const NormProblem&) { return true; }
  template <class Norm>
  static __device__ Norm known(const Norm& norm) {
    return norm;
  }
};

/// For one that x, y and the parameters have.
template <Element kElement>
struct OneElement {
  static constexpr bool areNarrow = kElement != Element::F32;
  static constexpr Element kHeldAs = kElement;
  static constexpr bool fit(const NormProblem& problem) {
    return problem.x == kElement && problem.y == kElement && problem.parameter == kElement;
  }
  /// Turns element types that were known at run time into constants of the kernel.
  template <class Norm>
  static __device__ Norm known(Norm norm) {
    norm.problem.x = norm.problem.y = norm.problem.parameter = kElement;
    return norm;
  }
};

/// How far the packets of memory are shifted against the columns of a row.
template <class Share>
__device__ std::int64_t shiftOf(std::int64_t row, std::int64_t cols) {
  return Share::kIsShifted ? row * cols % Share::kVector : 0;
}

/// Is a value of the packet at `col` one of the row's?
template <class Share>
__device__ bool isElement(std::int64_t cols, std::int64_t col, int value) {
  return !Share::kIsShifted || (col + value >= 0 && col + value < cols);
}

template <class Share>
__device__ void clearOthers(std::int64_t cols, std::int64_t col, float (&values)[Share::kVector]) {
#pragma unroll
  for (int v = 0; v < Share::kVector; ++v) values[v] = isElement<Share>(cols, col, v) ? values[v] : 0.0f;
}

/// The elements of a packet that lie in its row; only those are accessed.
template <class Share>
struct ElementsInside {
  int count, skipped;
  __device__ ElementsInside(std::int64_t cols, std::int64_t col)
      : count(cols - col < Share::kVector ? static_cast<int>(cols - col) : Share::kVector),
        skipped(col < 0 ? static_cast<int>(-col) : 0) {}
};

inline __device__ bool isPacketAt(Element element, const void* data, std::int64_t index) {
  const auto bytes = static_cast<std::uint64_t>(index * (element == Element::F32 ? 4 : 2));
  return (reinterpret_cast<std::uintptr_t>(data) + bytes) % kAccessBytes == 0;
}

/// first: element with which the row begins. Others than the row's elements are zero.
template <class Share>
__device__ void loadFromRow(Element element, const void* data, std::int64_t first, std::int64_t cols, std::int64_t col,
                            float (&out)[Share::kVector]) {
  constexpr int kVector = Share::kVector;
  if constexpr (!Share::kIsShifted) return loadElements<kVector>(element, data, first + col, kVector, out);
  const ElementsInside<Share> inside(cols, col);
  if (isPacketAt(element, data, first + col))
    return loadElements<kVector>(element, data, first + col, inside.count, out, inside.skipped);
  loadSingly<kVector>(element, data, first + col, inside.count, out, inside.skipped);
}

template <class Share>
__device__ void storeToRow(Element element, void* data, std::int64_t first, std::int64_t cols, std::int64_t col,
                           const float (&values)[Share::kVector]) {
  constexpr int kVector = Share::kVector;
  if constexpr (!Share::kIsShifted) return storeElements<kVector>(element, data, first + col, kVector, values);
  const ElementsInside<Share> inside(cols, col);
  if (isPacketAt(element, data, first + col))
    return storeElements<kVector>(element, data, first + col, inside.count, values, inside.skipped);
  storeSingly<kVector>(element, data, first + col, inside.count, inside.skipped, values);
}

/// f(packet, col, isInside) for the packets of the running thread. All threads of a row visit the same number of
/// packets, some of which may lie beyond its end.
template <class Share, class Function>
__device__ void forEachPlace(std::int64_t cols, std::int64_t shift, const Function& f) {
  constexpr int kVector = Share::kVector;
  constexpr int kStep = Share::kRowThreads * kVector;
  static_assert(!Share::isHeld || (kVector == RawPacket::kElements && !Share::kIsShifted));
  const std::int64_t before = Share::kIsShifted ? shift : 0;  // a constant, which saves registers
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kVector - before;
  if constexpr (Share::isHeld) {
#pragma unroll
    for (int packet = 0; packet < Share::kHeldPackets; ++packet)
      f(packet, first + packet * kStep, first + packet * kStep < cols);
  } else {
    for (std::int64_t step = 0; step < cols + before; step += kStep) f(0, first + step, first + step < cols);
  }
}

/// f(packet, col) for the packets of a row that the running thread has.
template <class Share, class Function>
__device__ void forEachPacket(std::int64_t cols, std::int64_t shift, const Function& f) {
  forEachPlace<Share>(cols, shift, [&](int packet, std::int64_t col, bool isInside) {
    if (isInside) f(packet, col);
  });
}

/// One row of a matrix as a thread reads it: all held packets are requested at once.
template <class Share, bool kIsHeld = Share::isHeld>
class RowReader {
 public:
  /// data null: there is no operand, and nothing is taken.
  __device__ RowReader(Element element, const void* data, std::int64_t first, std::int64_t cols)
      : m_element(element), m_data(data), m_first(first), m_cols(cols) {
    if constexpr (kIsHeld) {
      if (!data) return;
      forEachPacket<Share>(
          cols, 0, [&](int packet, std::int64_t col) { m_packets[packet].request(element, data, first + col); });
    }
  }

  explicit __device__ operator bool() const { return m_data != nullptr; }

  /// Call between two passes over held packets.
  __device__ void holdAsItIs() {
    if constexpr (kIsHeld)
      for (RawPacket& packet : m_packets) packet.holdAsItIs(m_element);
  }

  __device__ void take(int packet, std::int64_t col, float (&out)[Share::kVector]) const {
    if constexpr (kIsHeld)
      m_packets[packet].decode(m_element, out);
    else
      loadFromRow<Share>(m_element, m_data, m_first, m_cols, col, out);
  }

 private:
  Element m_element;
  const void* m_data;
  std::int64_t m_first;
  std::int64_t m_cols;
  RawPacket m_packets[kIsHeld ? Share::kHeldPackets : 1];
};

/// Adds over the threads of a row; every thread gets the sums. All threads of a block that share rows call it.
template <int kRowThreads, int kCount>
__device__ void sumOverRow(float (&sums)[kCount]) {
  for (int i = 0; i < kCount; ++i) sums[i] = sumOverLanes(sums[i], kWarpLanes);
  if constexpr (kRowThreads > kWarpLanes) {
    constexpr int kWarps = kRowThreads / kWarpLanes;
    __shared__ float shared[kCount][kWarps];
    for (int i = 0; i < kCount; ++i)
      if (threadIdx.x % kWarpLanes == 0) shared[i][threadIdx.x / kWarpLanes] = sums[i];
    __syncthreads();
    for (int i = 0; i < kCount; ++i) {
      sums[i] = 0.0f;
      for (int warp = 0; warp < kWarps; ++warp) sums[i] += shared[i][warp];
    }
    __syncthreads();
  }
}

/// The input of the normalization: left, or the rounded sum of both.
struct Addends {
  Element left = Element::F32;
  const void* leftData = nullptr;
  Element right = Element::F32;
  const void* rightData = nullptr;  // null: nothing is added
};

/// A stored sum is read in place of its addends.
inline __device__ Addends addendsOf(const NormForward& norm, bool isSumStored) {
  const NormAddend& addend = norm.addend;
  if (!addend.rightData) return {norm.problem.x, norm.x};
  if (isSumStored && addend.sum) return {norm.problem.x, addend.sum};
  return {addend.left, norm.x, addend.right, addend.rightData};
}

/// Type to which x is rounded before it is normalized: norms of te.ops cast it to the weight's dtype. F32: no rounding.
inline __device__ Element roundedX(const NormProblem& problem) {
  return problem.parameter == problem.x ? Element::F32 : problem.parameter;
}

template <int kVector>
__device__ void addRounded(Element sum, const float (&right)[kVector], float (&x)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) x[v] = x[v] + right[v];
  roundTo(sum, x);
}

/// One row of the normalization's input; the sum is stored when it is first computed. kHeldAs: an element type that
/// holds the problem's x.
template <class Share, Element kHeldAs>
class NormalizedRow {
 public:
  __device__ NormalizedRow(const NormForward& norm, std::int64_t row)
      : m_norm(norm),
        m_first(row * norm.problem.rowOfX),
        m_cols(norm.problem.cols),
        m_shift(shiftOf<Share>(row, m_cols)) {
    if constexpr (Share::isHeld) {
      const Operands operands(addendsOf(norm, false), m_first, m_cols);
      forEachPacket<Share>(m_cols, m_shift, [&](int packet, std::int64_t col) {
        float x[kVector];
        make(operands, packet, col, x);
        m_x[packet].encode(kHeldAs, x);
      });
    }
  }

  /// f(packet, col, isInside, x), as forEachPlace. x is undefined beyond the end.
  template <class Function>
  __device__ void forEachPlace(const Function& f) {
    if constexpr (Share::isHeld)
      device::forEachPlace<Share>(m_cols, m_shift, [&](int packet, std::int64_t col, bool isInside) {
        float x[kVector];
        m_x[packet].holdAsItIs(kHeldAs);
        m_x[packet].decode(kHeldAs, x);
        f(packet, col, isInside, x);
      });
    else
      walk(f);
  }

  /// f(col, x)
  template <class Function>
  __device__ void forEach(const Function& f) {
    forEachPlace([&](int, std::int64_t col, bool isInside, const float(&x)[kVector]) {
      if (isInside) f(col, x);
    });
  }

 private:
  static constexpr int kVector = Share::kVector;

  struct Operands {
    RowReader<Share> left, right;
    __device__ Operands(const Addends& addends, std::int64_t first, std::int64_t cols)
        : left(addends.left, addends.leftData, first, cols), right(addends.right, addends.rightData, first, cols) {}
  };

  __device__ void make(const Operands& operands, int packet, std::int64_t col, float (&x)[kVector]) const {
    operands.left.take(packet, col, x);
    if (!operands.right) return roundTo(roundedX(m_norm.problem), x);
    float right[kVector];
    operands.right.take(packet, col, right);
    addRounded<kVector>(m_norm.problem.x, right, x);
    if (m_norm.addend.sum) storeToRow<Share>(m_norm.problem.x, m_norm.addend.sum, m_first, m_cols, col, x);
  }

  template <class Function>
  __device__ void walk(const Function& f) {
    const Operands operands(addendsOf(m_norm, m_hasWalked), m_first, m_cols);
    device::forEachPlace<Share>(m_cols, m_shift, [&](int packet, std::int64_t col, bool isInside) {
      float x[kVector];
      if (isInside) make(operands, packet, col, x);
      f(packet, col, isInside, x);
    });
    m_hasWalked = true;
  }

  const NormForward& m_norm;
  std::int64_t m_first;
  std::int64_t m_cols;
  std::int64_t m_shift;
  bool m_hasWalked = false;
  RawPacket m_x[Share::isHeld ? Share::kHeldPackets : 1];
};

struct RowFactors {
  float mean = 0.0f;
  float rstd = 0.0f;
};

/// Divisor of the sums of a row.
inline __device__ float divisorOf(const NormProblem& problem) {
  return problem.kind == NormKind::L2 ? 1.0f : static_cast<float>(problem.cols);
}

inline __device__ float meanOf(const NormProblem& problem, float sum) { return sum / static_cast<float>(problem.cols); }

/// squares: sum of the squared distances from the mean
inline __device__ float rstdOf(const NormProblem& problem, float squares) {
  return 1.0f / sqrtf(squares / divisorOf(problem) + problem.eps);
}

/// All threads of the row call it.
template <class Share, class Row>
__device__ RowFactors measureRow(const NormProblem& problem, Row& row) {
  constexpr int kVector = Share::kVector;
  RowFactors factors;
  if (problem.kind == NormKind::Layer) {
    float sum[1] = {};
    row.forEach([&](std::int64_t, const float(&x)[kVector]) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) sum[0] += x[v];
    });
    sumOverRow<Share::kRowThreads>(sum);
    factors.mean = meanOf(problem, sum[0]);
  }
  float squares[1] = {};
  row.forEach([&](std::int64_t col, const float(&x)[kVector]) {
#pragma unroll
    for (int v = 0; v < kVector; ++v)
      if (isElement<Share>(problem.cols, col, v))
        squares[0] = fmaf(x[v] - factors.mean, x[v] - factors.mean, squares[0]);
  });
  sumOverRow<Share::kRowThreads>(squares);
  factors.rstd = rstdOf(problem, squares[0]);
  return factors;
}

/// norm: forward, after its factors have been computed, or backward
template <class Norm>
__device__ RowFactors factorsOf(const Norm& norm, std::int64_t row) {
  return {norm.mean ? norm.mean[row] : 0.0f, norm.rstd[row]};
}

/// Converts gamma as read into the multiplier; 1 where there is no gamma.
template <int kVector>
__device__ void centreGamma(const NormProblem& problem, bool hasGamma, float (&gamma)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) gamma[v] = hasGamma ? gamma[v] + (problem.isGammaZeroCentred ? 1.0f : 0.0f) : 1.0f;
}

/// gamma as a multiplier, loaded where it is used: it stays in the cache.
template <int kVector>
__device__ void loadGamma(const NormProblem& problem, const void* gamma, std::int64_t col, float (&out)[kVector]) {
  if (gamma) loadElements<kVector>(problem.parameter, gamma, col, kVector, out);
  centreGamma<kVector>(problem, gamma != nullptr, out);
}

/// Takes the requested gamma as a multiplier.
template <class Reader, int kVector>
__device__ void takeGamma(const NormProblem& problem, const Reader& reader, int packet, std::int64_t col,
                          float (&out)[kVector]) {
  if (reader) reader.take(packet, col, out);
  centreGamma<kVector>(problem, static_cast<bool>(reader), out);
}

/// Computes y from the normalized values. gamma: as a multiplier.
template <int kVector>
__device__ void normalize(const RowFactors& factors, const float (&gamma)[kVector], const float (&beta)[kVector],
                          float (&y)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) y[v] = fmaf((y[v] - factors.mean) * factors.rstd, gamma[v], beta[v]);
}

template <int kVector>
__device__ void standardize(const RowFactors& factors, float (&x)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) x[v] = (x[v] - factors.mean) * factors.rstd;
}

/// mean(g) and mean(g xhat) of a row, with g = dy gamma; only LayerNorm has the first.
struct GradientMeans {
  float g = 0.0f;
  float gx = 0.0f;
};

/// dx from dy: rstd (g - mean(g) - xhat mean(g xhat)) + extra, with g = dy gamma. gamma: as a multiplier.
template <int kVector>
__device__ void differentiate(float rstd, const GradientMeans& means, const float (&gamma)[kVector],
                              const float (&xhat)[kVector], const float (&extra)[kVector], float (&dx)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v)
    dx[v] = fmaf(rstd, fmaf(-means.gx, xhat[v], fmaf(dx[v], gamma[v], -means.g)), extra[v]);
}

/// xhat and dy of a row, and the addend of its gradient. They are requested in the constructor; a row beyond the last
/// one is empty.
template <class Share, class Elements>
class GradientRow {
 public:
  __device__ GradientRow(const NormBackward& norm, std::int64_t row)
      : m_isRow(row < norm.problem.rows),
        m_cols(norm.problem.cols),
        m_shift(shiftOf<Share>(row, m_cols)),
        m_readX(norm.problem.x, m_isRow ? norm.x : nullptr, row * norm.problem.rowOfX, m_cols),
        m_readDy(norm.problem.y, m_isRow ? norm.dy : nullptr, row * m_cols, m_cols),
        m_readExtra(norm.problem.x, m_isRow ? norm.extra : nullptr, row * m_cols, m_cols),
        m_roundedX(roundedX(norm.problem)) {
    if (m_isRow) m_factors = factorsOf(norm, row);
  }

  float __device__ rstd() const { return m_factors.rstd; }

  __device__ void holdAsItIs() {
    m_readX.holdAsItIs();
    m_readDy.holdAsItIs();
  }

  /// f(packet, col, isInside, xhat, dy), as forEachPlace. Both are undefined beyond the end.
  template <class Function>
  __device__ void forEachPlace(const Function& f) const {
    device::forEachPlace<Share>(m_cols, m_shift, [&](int packet, std::int64_t col, bool isInside) {
      float x[kVector];
      float dy[kVector];
      if (isInside) make(packet, col, x, dy);
      f(packet, col, isInside, x, dy);
    });
  }

  /// f(packet, col, xhat, dy)
  template <class Function>
  __device__ void forEach(const Function& f) const {
    forEachPlace(
        [&](int packet, std::int64_t col, bool isInside, const float(&xhat)[kVector], const float(&dy)[kVector]) {
          if (isInside) f(packet, col, xhat, dy);
        });
  }

  /// Leaves `extra` unchanged if nothing is added.
  __device__ void takeExtra(int packet, std::int64_t col, float (&extra)[Share::kVector]) const {
    if (m_readExtra) m_readExtra.take(packet, col, extra);
  }

 private:
  static constexpr int kVector = Share::kVector;

  __device__ void make(int packet, std::int64_t col, float (&x)[kVector], float (&dy)[kVector]) const {
    m_readX.take(packet, col, x);
    roundTo(m_roundedX, x);
    m_readDy.take(packet, col, dy);
    standardize<kVector>(m_factors, x);
  }

  bool m_isRow;
  std::int64_t m_cols;
  std::int64_t m_shift;
  RowReader<Share> m_readX, m_readDy;
  RowReader<Share, Share::isHeld && Elements::areNarrow> m_readExtra;
  Element m_roundedX;
  RowFactors m_factors;
};

/// All threads of the row call it and get the means. visit(col, xhat, dy): called for every packet.
template <class Share, class Row, class Gamma, class Visit>
__device__ GradientMeans measureGradient(const NormBackward& norm, const Row& row, const Gamma& readGamma,
                                         const Visit& visit) {
  constexpr int kVector = Share::kVector;
  float sums[2] = {};
  row.forEach([&](int packet, std::int64_t col, const float(&xhat)[kVector], const float(&dy)[kVector]) {
    visit(col, xhat, dy);
    float gamma[kVector];
    takeGamma(norm.problem, readGamma, packet, col, gamma);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const float g = dy[v] * gamma[v];
      sums[0] += g;
      sums[1] = fmaf(g, xhat[v], sums[1]);
    }
  });
  sumOverRow<Share::kRowThreads>(sums);
  const float divisor = divisorOf(norm.problem);
  return {norm.problem.kind == NormKind::Layer ? sums[0] / divisor : 0.0f, sums[1] / divisor};
}

}  // namespace fuseline::cuda::device
