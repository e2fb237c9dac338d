// The strip loops, compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_functions.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/strip_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/elementwise/vector_math-inl.h"

#ifndef FUSELINE_STRIP_FUNCTION_TABLE
#define FUSELINE_STRIP_FUNCTION_TABLE
namespace fuseline::cpu {

constexpr std::size_t kNumOpcodes = static_cast<std::size_t>(Opcode::SiluGrad) + 1;
constexpr std::size_t kNumDTypes = 3;

/// Functions for every form of a, b and out.
using StripVariants = std::array<StripFunction, 8>;

constexpr std::size_t variantIndex(StripForms forms) {
  return static_cast<std::size_t>(forms.a) * 4 + static_cast<std::size_t>(forms.b) * 2 +
         static_cast<std::size_t>(forms.out);
}

struct StripFunctionTable {
  std::array<std::array<StripVariants, 2>, kNumOpcodes> compute;  // [opcode][precision]
  std::array<StripFunction, kNumDTypes> decode;
  std::array<StripFunction, kNumDTypes> encode;
  DropoutFunction dropout = nullptr;
  SumFunction sum = nullptr;
};

}  // namespace fuseline::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

template <class F, class A, class Out>
void mapUnary(void* out, const void* a, const void*, std::size_t n) {
  const auto* const x = static_cast<const A*>(a);
  auto* const to = static_cast<Out*>(out);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {  // two at a time: the chains of exp overlap
    const V first = F::apply(load(x + i));
    const V second = F::apply(load(x + i + lanes));
    storePair(first, second, to + i);
  }
  for (; i + lanes <= n; i += lanes) store(F::apply(load(x + i)), to + i);
  if (i < n) storeTail(F::apply(loadTail(x + i, n - i)), to + i, n - i);
}

template <class F, class A, class B, class Out>
void mapBinary(void* out, const void* a, const void* b, std::size_t n) {
  const auto* const x = static_cast<const A*>(a);
  const auto* const y = static_cast<const B*>(b);
  auto* const to = static_cast<Out*>(out);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V first = F::apply(load(x + i), load(y + i));
    const V second = F::apply(load(x + i + lanes), load(y + i + lanes));
    storePair(first, second, to + i);
  }
  for (; i + lanes <= n; i += lanes) store(F::apply(load(x + i), load(y + i)), to + i);
  if (i < n) storeTail(F::apply(loadTail(x + i, n - i), loadTail(y + i, n - i)), to + i, n - i);
}

template <class From, class To>
void convert(void* out, const void* a, const void*, std::size_t n) {
  const auto* const x = static_cast<const From*>(a);
  auto* const to = static_cast<To*>(out);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) storePair(load(x + i), load(x + i + lanes), to + i);
  for (; i + lanes <= n; i += lanes) store(load(x + i), to + i);
  if (i < n) storeTail(loadTail(x + i, n - i), to + i, n - i);
}

float sum(const float* values, std::size_t n) {
  const std::size_t lanes = hn::Lanes(D());
  V first = hn::Zero(D());
  V second = hn::Zero(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    first = hn::Add(first, load(values + i));
    second = hn::Add(second, load(values + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) first = hn::Add(first, load(values + i));
  if (i < n) second = hn::Add(second, loadTail(values + i, n - i));
  return hn::GetLane(hn::SumOfLanes(D(), hn::Add(first, second)));
}

#if HWY_TARGET == HWY_SCALAR

void dropout(float* out, const DropoutMask& mask, float kept, std::uint64_t first, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = mask.keeps(first + i) ? kept : 0.0F;
}

#else

using D64 = hn::Repartition<std::uint64_t, D>;
using V64 = hn::Vec<D64>;

/// Multiplies the lower halves of each element; MulEven reads nothing else.
HWY_INLINE V64 multiplyLow(V64 x, std::uint32_t factor) {
  const DBits d;
  return hn::MulEven(hn::BitCast(d, x), hn::Set(d, factor));
}

/// Philox4x32-10, one counter per element: a word is in the lower half of each lane; the upper half may hold anything.
/// A round therefore needs no shuffles: only the upper halves of products are shifted down.
struct PhiloxWords {
  V64 w0, w1, w2, w3;
};

HWY_INLINE PhiloxWords philox(PhiloxWords c, PhiloxKey key) {
  constexpr int kRounds = 10;
  const D64 d;
  for (int round = 0; round < kRounds; ++round) {
    const V64 product0 = multiplyLow(c.w0, 0xD2511F53u);
    const V64 product1 = multiplyLow(c.w2, 0xCD9E8D57u);
    const V64 next0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c.w1), hn::Set(d, std::uint64_t{key[0]}));
    const V64 next2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c.w3), hn::Set(d, std::uint64_t{key[1]}));
    c = {next0, product1, next2, product0};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return c;
}

/// The words of the counters `block`, `block` + 1 ...
HWY_INLINE PhiloxWords philoxBlocks(const DropoutMask& mask, std::uint64_t block) {
  const D64 d;
  const V64 counter = hn::Add(hn::Set(d, block), hn::Iota(d, 0));
  return philox({counter, hn::ShiftRight<32>(counter), hn::Set(d, std::uint64_t{mask.stream()[0]}),
                 hn::Set(d, std::uint64_t{mask.stream()[1]})},
                mask.key());
}

/// `kept` or 0 for the pair of words in each element, the first in the lower half.
HWY_INLINE V64 keptPair(V64 first, V64 second, std::uint32_t threshold, float kept) {
  const D64 d;
  const V64 pair = hn::Or(hn::And(first, hn::Set(d, 0xffffffffu)), hn::ShiftLeft<32>(second));
  const auto isDropped = hn::Lt(hn::BitCast(DBits(), pair), hn::Set(DBits(), threshold));
  return hn::BitCast(d, hn::IfThenZeroElse(hn::RebindMask(D(), isDropped), hn::Set(D(), kept)));
}

/// The four elements of each of Lanes(D64()) blocks, two to an element of out.
HWY_INLINE void storeBlocks(const DropoutMask& mask, float kept, std::uint64_t block, std::uint64_t* out) {
  const PhiloxWords words = philoxBlocks(mask, block);
  const V64 first = keptPair(words.w0, words.w1, mask.threshold(), kept);
  const V64 second = keptPair(words.w2, words.w3, mask.threshold(), kept);
  hn::StoreInterleaved2(first, second, D64(), out);
}

void dropout(float* out, const DropoutMask& mask, float kept, std::uint64_t first, std::size_t n) {
  const std::size_t perCall = 4 * hn::Lanes(D64());
  HWY_ALIGN std::uint64_t part[2 * HWY_MAX_BYTES / sizeof(std::uint64_t)];
  first += mask.first();
  std::size_t i = 0;
  if (const std::size_t skipped = first % 4; skipped != 0 && n > 0) {  // begins amid a block
    storeBlocks(mask, kept, first / 4, part);
    i = std::min(n, perCall - skipped);
    std::memcpy(out, reinterpret_cast<const float*>(part) + skipped, i * sizeof(float));
  }
  for (; i + perCall <= n; i += perCall) {
    storeBlocks(mask, kept, (first + i) / 4, part);
    std::memcpy(out + i, part, perCall * sizeof(float));
  }
  if (i < n) {
    storeBlocks(mask, kept, (first + i) / 4, part);
    std::memcpy(out + i, part, (n - i) * sizeof(float));
  }
}

#endif

/// NaN where x or y is NaN, else `result`.
HWY_INLINE V nanOr(V x, V y, V result) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), result);
}

#define FUSELINE_UNARY(Name, expression)                  \
  struct Name {                                           \
    static HWY_INLINE V apply(V x) { return expression; } \
  };
#define FUSELINE_BINARY(Name, expression)                      \
  struct Name {                                                \
    static HWY_INLINE V apply(V x, V y) { return expression; } \
  };

FUSELINE_BINARY(Add, hn::Add(x, y))
FUSELINE_BINARY(Sub, hn::Sub(x, y))
FUSELINE_BINARY(Mul, hn::Mul(x, y))
FUSELINE_BINARY(Div, hn::Div(x, y))
// NaN in either operand gives NaN, unlike the x86 instructions.
FUSELINE_BINARY(Max, nanOr(x, y, hn::Max(x, y)))
FUSELINE_BINARY(Min, nanOr(x, y, hn::Min(x, y)))
FUSELINE_BINARY(Less, nanOr(x, y, hn::IfThenElseZero(hn::Lt(x, y), splat(1.0))))
FUSELINE_UNARY(Neg, hn::Neg(x))
FUSELINE_UNARY(Exp, expWide(x))
FUSELINE_UNARY(Log, logFull(x))
FUSELINE_UNARY(Sqrt, hn::Sqrt(x))
FUSELINE_UNARY(Rsqrt, hn::Div(splat(1.0), hn::Sqrt(x)))
FUSELINE_UNARY(Tanh, tanhFull(x))
FUSELINE_UNARY(Erf, erfFull(x))
FUSELINE_UNARY(ExactGelu, exactGelu(x))
FUSELINE_UNARY(ExactGeluGrad, exactGeluGrad(x))

#undef FUSELINE_UNARY
#undef FUSELINE_BINARY

template <Accuracy kAccuracy>
struct Sigmoid {
  static HWY_INLINE V apply(V x) { return sigmoid<kAccuracy>(x); }
};
template <Accuracy kAccuracy>
struct Gelu {
  static HWY_INLINE V apply(V x) { return gelu<kAccuracy>(x); }
};
template <Accuracy kAccuracy>
struct GeluGrad {
  static HWY_INLINE V apply(V x) { return geluGrad<kAccuracy>(x); }
};
template <Accuracy kAccuracy>
struct Silu {
  static HWY_INLINE V apply(V x) { return silu<kAccuracy>(x); }
};
template <Accuracy kAccuracy>
struct SiluGrad {
  static HWY_INLINE V apply(V x) { return siluGrad<kAccuracy>(x); }
};

/// The form of b does not matter to a unary function.
template <class F>
StripVariants unaryVariants() {
  return {mapUnary<F, float, float>, mapUnary<F, float, Bf16>, mapUnary<F, float, float>, mapUnary<F, float, Bf16>,
          mapUnary<F, Bf16, float>,  mapUnary<F, Bf16, Bf16>,  mapUnary<F, Bf16, float>,  mapUnary<F, Bf16, Bf16>};
}

template <class F>
StripVariants binaryVariants() {
  return {mapBinary<F, float, float, float>, mapBinary<F, float, float, Bf16>, mapBinary<F, float, Bf16, float>,
          mapBinary<F, float, Bf16, Bf16>,   mapBinary<F, Bf16, float, float>, mapBinary<F, Bf16, float, Bf16>,
          mapBinary<F, Bf16, Bf16, float>,   mapBinary<F, Bf16, Bf16, Bf16>};
}

StripFunctionTable makeTable() {
  StripFunctionTable table{};
  const auto set = [&](Opcode opcode, const StripVariants& full, const StripVariants& reduced) {
    table.compute[static_cast<std::size_t>(opcode)] = {full, reduced};
  };
  const auto same = [&](Opcode opcode, const StripVariants& variants) { set(opcode, variants, variants); };
  same(Opcode::Add, binaryVariants<Add>());
  same(Opcode::Sub, binaryVariants<Sub>());
  same(Opcode::Mul, binaryVariants<Mul>());
  same(Opcode::Div, binaryVariants<Div>());
  same(Opcode::Max, binaryVariants<Max>());
  same(Opcode::Min, binaryVariants<Min>());
  same(Opcode::Less, binaryVariants<Less>());
  same(Opcode::Neg, unaryVariants<Neg>());
  same(Opcode::Exp, unaryVariants<Exp>());
  same(Opcode::Log, unaryVariants<Log>());
  same(Opcode::Sqrt, unaryVariants<Sqrt>());
  same(Opcode::Rsqrt, unaryVariants<Rsqrt>());
  same(Opcode::Tanh, unaryVariants<Tanh>());
  same(Opcode::Erf, unaryVariants<Erf>());
  same(Opcode::ExactGelu, unaryVariants<ExactGelu>());
  same(Opcode::ExactGeluGrad, unaryVariants<ExactGeluGrad>());
  set(Opcode::Sigmoid, unaryVariants<Sigmoid<Accuracy::Full>>(), unaryVariants<Sigmoid<Accuracy::Bf16>>());
  set(Opcode::Gelu, unaryVariants<Gelu<Accuracy::Full>>(), unaryVariants<Gelu<Accuracy::Bf16>>());
  set(Opcode::GeluGrad, unaryVariants<GeluGrad<Accuracy::Full>>(), unaryVariants<GeluGrad<Accuracy::Bf16>>());
  set(Opcode::Silu, unaryVariants<Silu<Accuracy::Full>>(), unaryVariants<Silu<Accuracy::Bf16>>());
  set(Opcode::SiluGrad, unaryVariants<SiluGrad<Accuracy::Full>>(), unaryVariants<SiluGrad<Accuracy::Bf16>>());
  table.decode = {convert<float, float>, convert<F16, float>, convert<Bf16, float>};
  table.encode = {convert<float, float>, convert<float, F16>, convert<float, Bf16>};
  table.dropout = dropout;
  table.sum = sum;
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

static_assert(static_cast<std::size_t>(DType::F32) == 0 && static_cast<std::size_t>(DType::F16) == 1 &&
              static_cast<std::size_t>(DType::BF16) == 2);

HWY_EXPORT(makeTable);

namespace {

const StripFunctionTable& functionTable() {
  static const StripFunctionTable table = HWY_DYNAMIC_DISPATCH(makeTable)();
  return table;
}

}  // namespace

StripFunction computeFunction(Opcode opcode, Precision precision, StripForms forms) {
  const auto& variants = functionTable().compute[static_cast<std::size_t>(opcode)];
  return variants[precision == Precision::Bf16 ? 1 : 0][variantIndex(forms)];
}

StripFunction decodeFunction(DType dtype) { return functionTable().decode[static_cast<std::size_t>(dtype)]; }

StripFunction encodeFunction(DType dtype) { return functionTable().encode[static_cast<std::size_t>(dtype)]; }

DropoutFunction dropoutFunction() { return functionTable().dropout; }

SumFunction sumFunction() { return functionTable().sum; }

}  // namespace fuseline::cpu
#endif
