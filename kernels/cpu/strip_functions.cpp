// The strip loops, compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/strip_functions.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/strip_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include "kernels/cpu/vector_math-inl.h"

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
  set(Opcode::Sigmoid, unaryVariants<Sigmoid<Accuracy::Full>>(), unaryVariants<Sigmoid<Accuracy::Bf16>>());
  set(Opcode::Gelu, unaryVariants<Gelu<Accuracy::Full>>(), unaryVariants<Gelu<Accuracy::Bf16>>());
  set(Opcode::GeluGrad, unaryVariants<GeluGrad<Accuracy::Full>>(), unaryVariants<GeluGrad<Accuracy::Bf16>>());
  set(Opcode::Silu, unaryVariants<Silu<Accuracy::Full>>(), unaryVariants<Silu<Accuracy::Bf16>>());
  set(Opcode::SiluGrad, unaryVariants<SiluGrad<Accuracy::Full>>(), unaryVariants<SiluGrad<Accuracy::Bf16>>());
  table.decode = {convert<float, float>, convert<F16, float>, convert<Bf16, float>};
  table.encode = {convert<float, float>, convert<float, F16>, convert<float, Bf16>};
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

}  // namespace fuseline::cpu
#endif
