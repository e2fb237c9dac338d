// Compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_functions.h"

#include <array>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/elementwise/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

// ---- products

/// Sums that stay in registers: of 32 registers 24, of 16 eight.
constexpr std::size_t kBlockRows = HWY_TARGET <= HWY_AVX3 ? 12 : 4;
constexpr std::size_t kBlockVectors = 2;

/// kRows rows and kVectors vectors of C. Index sequences, because sums in an array must have constant indices to be in
/// registers.
template <std::size_t kRows, std::size_t kVectors>
class Block {
  static constexpr auto kSums = std::make_index_sequence<kRows * kVectors>();
  static constexpr auto kColumns = std::make_index_sequence<kVectors>();

 public:
  HWY_INLINE static void run(const TileProduct& p, std::int64_t row, std::int64_t col) {
    V sums[kRows * kVectors];
    clear(sums, kSums);
    // Three rows reach from one pointer by one stride.
    const float* a0 = p.a + row * p.aRow;
    const float* a1 = a0 + 3 * p.aRow;
    const float* a2 = a0 + 6 * p.aRow;
    const float* a3 = a0 + 9 * p.aRow;
    const float* b = p.b + col;
    for (std::int64_t i = 0; i < p.k; ++i) {
      V factors[kVectors];
      loadRow(b, factors, kColumns);
      const float* const rows[] = {a0, a1, a2, a3};
      step(sums, rows, p.aRow, factors, kSums);
      a0 += p.aCol;
      a1 += p.aCol;
      a2 += p.aCol;
      a3 += p.aCol;
      b += p.bRow;
    }
    finish(sums, p, row, col, kSums);
  }

 private:
  template <std::size_t... kIndex>
  HWY_INLINE static void clear(V* sums, std::index_sequence<kIndex...>) {
    ((sums[kIndex] = hn::Zero(D())), ...);
  }

  template <std::size_t... kIndex>
  HWY_INLINE static void loadRow(const float* b, V* factors, std::index_sequence<kIndex...>) {
    ((factors[kIndex] = hn::LoadU(D(), b + kIndex * hn::Lanes(D()))), ...);
  }

  template <std::size_t... kIndex>
  HWY_INLINE static void step(V* sums, const float* const* rows, std::int64_t aRow, const V* factors,
                              std::index_sequence<kIndex...>) {
    ((sums[kIndex] = hn::MulAdd(hn::Set(D(), rows[kIndex / kVectors / 3][(kIndex / kVectors % 3) * aRow]),
                                factors[kIndex % kVectors], sums[kIndex])),
     ...);
  }

  template <std::size_t... kIndex>
  HWY_INLINE static void finish(const V* sums, const TileProduct& p, std::int64_t row, std::int64_t col,
                                std::index_sequence<kIndex...>) {
    float* const c = p.c + row * p.cRow + col;
    const auto at = [&](std::size_t index) HWY_ATTR {
      return c + static_cast<std::int64_t>(index / kVectors) * p.cRow +
             static_cast<std::int64_t>(index % kVectors * hn::Lanes(D()));
    };
    if (p.keep) {
      const auto kept = [&](std::size_t index) HWY_ATTR {
        return hn::Set(D(), p.keep[row + static_cast<std::int64_t>(index / kVectors)]);
      };
      (hn::StoreU(hn::MulAdd(hn::LoadU(D(), at(kIndex)), kept(kIndex), sums[kIndex]), D(), at(kIndex)), ...);
    } else if (p.accumulates) {
      (hn::StoreU(hn::Add(hn::LoadU(D(), at(kIndex)), sums[kIndex]), D(), at(kIndex)), ...);
    } else {
      (hn::StoreU(sums[kIndex], D(), at(kIndex)), ...);
    }
  }
};

template <std::size_t kVectors>
HWY_INLINE void multiplyColumns(const TileProduct& p, std::int64_t col) {
  constexpr auto kRows = static_cast<std::int64_t>(kBlockRows);
  std::int64_t row = 0;
  for (; row + kRows <= p.m; row += kRows) Block<kBlockRows, kVectors>::run(p, row, col);
  for (; row + 4 <= p.m; row += 4) Block<4, kVectors>::run(p, row, col);
  for (; row < p.m; ++row) Block<1, kVectors>::run(p, row, col);
}

void multiply(const TileProduct& p) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  constexpr auto kVectors = static_cast<std::int64_t>(kBlockVectors);
  std::int64_t col = 0;
  for (; col + kVectors * lanes <= p.n; col += kVectors * lanes) multiplyColumns<kBlockVectors>(p, col);
  for (; col < p.n; col += lanes) multiplyColumns<1>(p, col);
}

bool isFinite(const float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t cols) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  V zeros = hn::Zero(D());  // stay so, but for NaN
  for (std::int64_t row = 0; row < numRows; ++row) {
    const float* const x = rows + row * stride;
    std::int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) zeros = hn::MulAdd(hn::LoadU(D(), x + col), hn::Zero(D()), zeros);
    if (col < cols) zeros = hn::MulAdd(loadTail(x + col, static_cast<std::size_t>(cols - col)), hn::Zero(D()), zeros);
  }
  return !(hn::GetLane(hn::SumOfLanes(D(), zeros)) != 0.0F);
}

// ---- scores

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kMostKeys = std::numeric_limits<std::int32_t>::max();

/// Every vector of a tile: f(offset).
template <class Function>
HWY_INLINE void forEachVector(std::int64_t keys, std::int64_t queries, Function f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for (std::int64_t key = 0; key < keys; ++key)
    for (std::int64_t query = 0; query < queries; query += lanes) f(key * kTileQueries + query);
}

void changeScores(float* scores, std::int64_t keys, std::int64_t queries, const ScoreChange& change) {
  const V cap = hn::Set(D(), change.softcap);
  forEachVector(keys, queries, [&](std::int64_t at) HWY_ATTR {
    V s = hn::Mul(hn::LoadU(D(), scores + at), hn::Set(D(), change.factor));
    if (change.before) s = hn::Add(s, hn::LoadU(D(), change.before + at));
    if (change.softcap != 0.0F) {
      const V share = tanhFull(hn::Div(s, cap));
      s = hn::Mul(cap, share);
      if (change.slope) hn::StoreU(hn::NegMulAdd(share, share, splat(1.0)), D(), change.slope + at);
    }
    if (change.after) s = hn::Add(s, hn::LoadU(D(), change.after + at));
    if (change.visible)
      s = hn::IfThenElse(hn::Ne(hn::LoadU(D(), change.visible + at), hn::Zero(D())), s, hn::Set(D(), -kInfinity));
    hn::StoreU(s, D(), scores + at);
  });
}

/// exp(x) for x up to about 0, or 0 below -87: the largest score of a row is subtracted.
HWY_INLINE V expOfScore(V x) {
  const V p = expNormal<Accuracy::Full>(clamp(x, -87.0, 88.0));
  return keepNan(x, hn::IfThenZeroElse(hn::Lt(x, splat(-87.0)), p));
}

/// Lanes of a vector whose queries attend to a key.
class LaneRange {
 public:
  HWY_INLINE LaneRange(const TileRange& range, std::int64_t query)
      : m_isAll(!range.first),
        m_first(m_isAll ? hn::Zero(DInt()) : hn::LoadU(DInt(), range.first + query)),
        m_last(m_isAll ? hn::Set(DInt(), kMostKeys) : hn::LoadU(DInt(), range.last + query)) {}

  HWY_INLINE bool isAll() const { return m_isAll; }
  HWY_INLINE hn::Mask<D> sees(std::int64_t key) const {
    const auto index = hn::Set(DInt(), static_cast<std::int32_t>(key));
    return hn::RebindMask(D(), hn::AndNot(hn::Lt(index, m_first), hn::Lt(index, m_last)));
  }

 private:
  bool m_isAll;
  hn::Vec<DInt> m_first, m_last;
};

/// The largest score of each query. Keys that a query does not attend to become -inf.
HWY_INLINE V largestScore(float* scores, std::int64_t keys, const LaneRange& range) {
  V largest = hn::Set(D(), -kInfinity);
  if (range.isAll()) {
    V other = largest;
    std::int64_t key = 0;
    for (; key + 2 <= keys; key += 2) {
      largest = hn::Max(largest, hn::LoadU(D(), scores + key * kTileQueries));
      other = hn::Max(other, hn::LoadU(D(), scores + (key + 1) * kTileQueries));
    }
    if (key < keys) largest = hn::Max(largest, hn::LoadU(D(), scores + key * kTileQueries));
    return hn::Max(largest, other);
  }
  for (std::int64_t key = 0; key < keys; ++key) {
    float* const at = scores + key * kTileQueries;
    const V s = hn::IfThenElse(range.sees(key), hn::LoadU(D(), at), hn::Set(D(), -kInfinity));
    hn::StoreU(s, D(), at);
    largest = hn::Max(largest, s);
  }
  return largest;
}

/// scores become exp(factor score - reference). Returns their sum.
HWY_INLINE V sumOfExp(float* scores, std::int64_t keys, V factor, V reference) {
  V sum = hn::Zero(D());
  V other = hn::Zero(D());
  std::int64_t key = 0;
  for (; key + 2 <= keys; key += 2) {
    float* const at = scores + key * kTileQueries;
    const V p = expOfScore(hn::MulSub(hn::LoadU(D(), at), factor, reference));
    const V q = expOfScore(hn::MulSub(hn::LoadU(D(), at + kTileQueries), factor, reference));
    hn::StoreU(p, D(), at);
    hn::StoreU(q, D(), at + kTileQueries);
    sum = hn::Add(sum, p);
    other = hn::Add(other, q);
  }
  if (key < keys) {
    float* const at = scores + key * kTileQueries;
    const V p = expOfScore(hn::MulSub(hn::LoadU(D(), at), factor, reference));
    hn::StoreU(p, D(), at);
    sum = hn::Add(sum, p);
  }
  return hn::Add(sum, other);
}

void softmax(const SoftmaxTile& tile) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const V nothing = hn::Set(D(), -kInfinity);
  const V factor = hn::Set(D(), tile.factor);
  for (std::int64_t query = 0; query < tile.queries; query += lanes) {
    const LaneRange range(tile.range, query);
    const V before = hn::LoadU(D(), tile.largest + query);
    const V largest = hn::Max(before, hn::Mul(largestScore(tile.scores + query, tile.keys, range), factor));
    // Where a query has seen no key yet, -inf less -inf would be NaN.
    const V reference = hn::IfThenZeroElse(hn::Eq(largest, nothing), largest);
    const V keep = expOfScore(hn::Sub(before, reference));
    const V sum = sumOfExp(tile.scores + query, tile.keys, factor, reference);
    hn::StoreU(largest, D(), tile.largest + query);
    hn::StoreU(keep, D(), tile.keep + query);
    hn::StoreU(hn::MulAdd(hn::LoadU(D(), tile.sum + query), keep, sum), D(), tile.sum + query);
  }
}

/// exp(factor score - largest - lse)
template <bool kHasLargest>
HWY_INLINE V probabilityOf(V score, V factor, V largest, V lse) {
  if constexpr (kHasLargest) return expOfScore(hn::Sub(hn::MulSub(score, factor, largest), lse));
  return expOfScore(hn::MulSub(score, factor, lse));
}

/// One vector of a tile. isSeen: what the range shows of it; isAll: the range shows everything.
template <bool kHasLargest>
HWY_INLINE void softmaxGradAt(const SoftmaxGradTile& tile, std::int64_t at, V largest, V lse, V delta, bool isAll,
                              hn::Mask<D> isSeen) {
  if (tile.visible) {
    isSeen = hn::And(isSeen, hn::Ne(hn::LoadU(D(), tile.visible + at), hn::Zero(D())));
    isAll = false;
  }
  V p = probabilityOf<kHasLargest>(hn::LoadU(D(), tile.scores + at), hn::Set(D(), tile.factor), largest, lse);
  V gradient = hn::LoadU(D(), tile.gradProbabilities + at);
  if (!isAll) p = hn::IfThenElseZero(isSeen, p);
  V shown = p;
  if (tile.kept) {
    const V kept = hn::LoadU(D(), tile.kept + at);
    shown = hn::Mul(p, kept);
    gradient = hn::Mul(gradient, kept);
  }
  V dS = hn::Mul(p, hn::Sub(gradient, delta));
  if (tile.slope) dS = hn::Mul(dS, hn::LoadU(D(), tile.slope + at));
  if (!isAll) dS = hn::IfThenElseZero(isSeen, dS);
  hn::StoreU(shown, D(), tile.scores + at);
  hn::StoreU(dS, D(), tile.gradProbabilities + at);
}

template <bool kHasLargest>
HWY_INLINE void softmaxGradRows(const SoftmaxGradTile& tile) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for (std::int64_t query = 0; query < tile.queries; query += lanes) {
    const LaneRange range(tile.range, query);
    const V largest = kHasLargest ? hn::LoadU(D(), tile.largest + query) : hn::Zero(D());
    const V lse = hn::LoadU(D(), tile.lse + query);
    const V delta = hn::LoadU(D(), tile.delta + query);
    for (std::int64_t key = 0; key < tile.keys; ++key)
      softmaxGradAt<kHasLargest>(tile, key * kTileQueries + query, largest, lse, delta, range.isAll(), range.sees(key));
  }
}

void softmaxGrad(const SoftmaxGradTile& tile) {
  tile.largest ? softmaxGradRows<true>(tile) : softmaxGradRows<false>(tile);
}

// ---- rows

HWY_INLINE void transposeOne(const float* from, std::int64_t fromRow, std::int64_t rows, std::int64_t cols, float* to,
                             std::int64_t toRow) {
  for (std::int64_t col = 0; col < cols; ++col)
    for (std::int64_t row = 0; row < rows; ++row) to[col * toRow + row] = from[row * fromRow + col];
}

#if HWY_TARGET != HWY_SCALAR
/// Four rows of four columns.
HWY_INLINE void transposeFour(const float* from, std::int64_t fromRow, float* to, std::int64_t toRow) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto r0 = hn::LoadU(d, from);
  const auto r1 = hn::LoadU(d, from + fromRow);
  const auto r2 = hn::LoadU(d, from + 2 * fromRow);
  const auto r3 = hn::LoadU(d, from + 3 * fromRow);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + toRow);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * toRow);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * toRow);
}
#endif

void transpose(const float* from, std::int64_t fromRow, std::int64_t rows, std::int64_t cols, float* to,
               std::int64_t toRow) {
  std::int64_t fullRows = 0;
  std::int64_t fullCols = 0;
#if HWY_TARGET != HWY_SCALAR
  fullRows = rows / 4 * 4;
  fullCols = cols / 4 * 4;
  for (std::int64_t col = 0; col < fullCols; col += 4)
    for (std::int64_t row = 0; row < fullRows; row += 4)
      transposeFour(from + row * fromRow + col, fromRow, to + col * toRow + row, toRow);
#endif
  transposeOne(from + fullRows * fromRow, fromRow, rows - fullRows, fullCols, to + fullRows, toRow);
  transposeOne(from + fullCols, fromRow, rows, cols - fullCols, to + fullCols * toRow, toRow);
  for (std::int64_t col = 0; col < cols && rows < toRow; ++col)
    std::memset(to + col * toRow + rows, 0, static_cast<std::size_t>(toRow - rows) * sizeof(float));
}

HWY_INLINE void rotateHalves(float* first, float* second, std::int64_t pairs, const float* cosines,
                             const float* sines) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t m = 0;
  for (; m + lanes <= pairs; m += lanes) {
    const V x1 = load(first + m);
    const V x2 = load(second + m);
    const V c = load(cosines + m);
    const V s = load(sines + m);
    store(hn::NegMulAdd(x2, s, hn::Mul(x1, c)), first + m);
    store(hn::MulAdd(x1, s, hn::Mul(x2, c)), second + m);
  }
  for (; m < pairs; ++m) {
    const float x1 = first[m];
    first[m] = x1 * cosines[m] - second[m] * sines[m];
    second[m] = second[m] * cosines[m] + x1 * sines[m];
  }
}

HWY_INLINE void rotateNeighbors(float* x, std::int64_t pairs, const float* cosines, const float* sines) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t m = 0;
  for (; m + lanes <= pairs; m += lanes) {
    V x1, x2;
    hn::LoadInterleaved2(D(), x + 2 * m, x1, x2);
    const V c = load(cosines + m);
    const V s = load(sines + m);
    hn::StoreInterleaved2(hn::NegMulAdd(x2, s, hn::Mul(x1, c)), hn::MulAdd(x1, s, hn::Mul(x2, c)), D(), x + 2 * m);
  }
  for (; m < pairs; ++m) {
    const float x1 = x[2 * m];
    x[2 * m] = x1 * cosines[m] - x[2 * m + 1] * sines[m];
    x[2 * m + 1] = x[2 * m + 1] * cosines[m] + x1 * sines[m];
  }
}

void rotate(float* x, std::int64_t heads, std::int64_t channels, std::int64_t pairs, bool isInterleaved,
            const float* cosines, const float* sines) {
  for (std::int64_t head = 0; head < heads; ++head, x += channels) {
    if (isInterleaved)
      rotateNeighbors(x, pairs, cosines, sines);
    else
      rotateHalves(x, x + pairs, pairs, cosines, sines);
  }
}

template <class T>
HWY_INLINE T* rowAt(const RowsOf& rows, std::int64_t row) {
  return reinterpret_cast<T*>(rows.data) + row * rows.stride;
}

template <class T>
void readRows(RowsOf from, std::int64_t rows, std::int64_t cols, float factor, float* to, std::int64_t toRow) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const V scale = hn::Set(D(), factor);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const source = rowAt<const T>(from, row);
    float* const target = to + row * toRow;
    std::int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) store(hn::Mul(load(source + col), scale), target + col);
    for (; col < toRow; col += lanes) {
      const V tail = col < cols ? loadTail(source + col, static_cast<std::size_t>(cols - col)) : hn::Zero(D());
      store(hn::Mul(tail, scale), target + col);
    }
  }
}

template <class T>
void writeRows(const float* from, std::int64_t fromRow, std::int64_t rows, std::int64_t cols, const float* factors,
               float factor, RowsOf to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const V scale = hn::Set(D(), factors ? factors[row] : factor);
    const float* const source = from + row * fromRow;
    T* const target = rowAt<T>(to, row);
    std::int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) store(hn::Mul(load(source + col), scale), target + col);
    if (col < cols) storeTail(hn::Mul(load(source + col), scale), target + col, static_cast<std::size_t>(cols - col));
  }
}

/// cols: padded to whole vectors in memory.
template <class T>
void roundRows(float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t cols, float factor) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const V scale = hn::Set(D(), factor);
  T rounded[kLanePad];
  for (std::int64_t row = 0; row < numRows; ++row)
    for (std::int64_t col = 0; col < cols; col += lanes) {
      float* const at = rows + row * stride + col;
      store(load(at), rounded);
      store(hn::Mul(load(rounded), scale), at);
    }
}

template <class T>
void dotRows(RowsOf a, RowsOf b, std::int64_t rows, std::int64_t cols, float* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const left = rowAt<const T>(a, row);
    const T* const right = rowAt<const T>(b, row);
    V sum = hn::Zero(D());
    std::int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) sum = hn::MulAdd(load(left + col), load(right + col), sum);
    if (col < cols) {
      const auto count = static_cast<std::size_t>(cols - col);
      sum = hn::MulAdd(loadTail(left + col, count), loadTail(right + col, count), sum);
    }
    sums[row] = hn::GetLane(hn::SumOfLanes(D(), sum));
  }
}

template <class T>
HeadRowFunctions rowFunctions() {
  return {.read = readRows<T>, .write = writeRows<T>, .round = roundRows<T>, .dot = dotRows<T>};
}

AttentionFunctions makeAttentionFunctions() {
  return {.multiply = multiply,
          .isFinite = isFinite,
          .changeScores = changeScores,
          .softmax = softmax,
          .softmaxGrad = softmaxGrad,
          .transpose = transpose,
          .rotate = rotate};
}

std::array<HeadRowFunctions, 3> makeHeadRowFunctions() {
  return {rowFunctions<float>(), rowFunctions<F16>(), rowFunctions<Bf16>()};
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(makeAttentionFunctions);
HWY_EXPORT(makeHeadRowFunctions);

const AttentionFunctions& attentionFunctions() {
  static const AttentionFunctions functions = HWY_DYNAMIC_DISPATCH(makeAttentionFunctions)();
  return functions;
}

const HeadRowFunctions& headRowFunctions(DType dtype) {
  static const std::array<HeadRowFunctions, 3> functions = HWY_DYNAMIC_DISPATCH(makeHeadRowFunctions)();
  return functions[static_cast<std::size_t>(dtype)];
}

}  // namespace fuseline::cpu
#endif
