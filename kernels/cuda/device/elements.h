// Elements of tensors in memory: how they are read as float32 and written back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/conversions.h"
#include "kernels/cuda/device/program.h"

#include <bit>
#include <cstdint>

/// Mark reads and writes of tensors. They tell the compiler that an address lies in global memory, which it cannot
/// always see. A host build of this code defines them to report accesses that would fault on a device, because a packet
/// is not aligned, and to count the bytes.
#ifndef FUSELINE_READS
#define FUSELINE_READS(address, bytes) __builtin_assume(__isGlobal(address))
#define FUSELINE_WRITES(address, bytes) __builtin_assume(__isGlobal(address))
#endif

/// Shared memory of the size that the launch names.
#ifndef FUSELINE_DYNAMIC_SHARED
#define FUSELINE_DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]
#endif

namespace fuseline::cuda::device {

/// A memory transaction of one thread is at most this wide.
constexpr int kAccessBytes = 16;

template <Element kElement>
struct Codec;

template <>
struct Codec<Element::F32> {
  using Bits = std::uint32_t;
  static __device__ float decode(Bits bits) { return std::bit_cast<float>(bits); }
  static __device__ Bits encode(float value) { return std::bit_cast<Bits>(value); }
};

template <>
struct Codec<Element::F16> {
  using Bits = std::uint16_t;
  static __device__ float decode(Bits bits) { return floatOfF16(bits); }
  static __device__ Bits encode(float value) { return f16OfFloat(value); }
  static __device__ std::uint32_t encodePair(float first, float second) { return f16PairOf(first, second); }
};

template <>
struct Codec<Element::BF16> {
  using Bits = std::uint16_t;
  static __device__ float decode(Bits bits) { return bf16ToFloat(bits); }
  static __device__ Bits encode(float value) { return bf16OfFloat(value); }
  static __device__ std::uint32_t encodePair(float first, float second) { return bf16PairOf(first, second); }
};

/// Encodes the values that `words` holds.
template <Element kElement, int kWords>
__device__ void encodeWords(const float* values, std::uint32_t (&words)[kWords]) {
#pragma unroll
  for (int word = 0; word < kWords; ++word) {
    if constexpr (kElement == Element::F32)
      words[word] = Codec<kElement>::encode(values[word]);
    else
      words[word] = Codec<kElement>::encodePair(values[2 * word], values[2 * word + 1]);
  }
}

/// The i-th element stored in words.
template <class Bits>
__device__ Bits bitsIn(const std::uint32_t* words, int i) {
  constexpr int kPerWord = 4 / sizeof(Bits);
  return static_cast<Bits>(words[i / kPerWord] >> (i % kPerWord * 8 * sizeof(Bits)));
}

/// kVector elements that are moved together, in as few accesses as there are.
template <class Bits, int kVector>
struct alignas(sizeof(Bits) * kVector < kAccessBytes ? sizeof(Bits) * kVector : kAccessBytes) Packet {
  Bits elements[kVector];
};

/// A packet that is being loaded. Code that requests all its packets before it takes the first one loads them
/// concurrently and waits once.
template <Element kElement, int kVector>
class LoadedPacket {
 public:
  /// Requests the first `count` of kVector elements from `index` on but for the `skipped` first ones; the rest are
  /// zero. A whole packet must be aligned.
  __device__ void request(const void* data, std::int64_t index, int count, int skipped = 0) {
    if (kBytes % sizeof(std::uint32_t) == 0 && count == kVector && skipped == 0) return requestWhole(data, index);
    requestSingly(data, index, count, skipped);
  }
  __device__ void requestWhole(const void* data, std::int64_t index) {
    const Bits* const from = static_cast<const Bits*>(data) + index;
    FUSELINE_READS(from, kBytes);
    m_words = *reinterpret_cast<const Words*>(from);
  }
  /// As request(), at any address.
  __device__ void requestSingly(const void* data, std::int64_t index, int count, int skipped = 0) {
    const Bits* const from = static_cast<const Bits*>(data) + index;
    m_words = {};
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      if (i >= skipped && i < count)
        m_words.elements[i / kPerWord] |= static_cast<std::uint32_t>(from[i]) << (i % kPerWord * kBits);
  }
  __device__ void take(float (&out)[kVector]) const {
#pragma unroll
    for (int i = 0; i < kVector; ++i) out[i] = Codec<kElement>::decode(bitsIn<Bits>(m_words.elements, i));
  }
  /// The same as take(), where the compiler would otherwise keep the earlier result in more registers.
  __device__ void takeAnew(float (&out)[kVector]) const {
    LoadedPacket copy = *this;
#ifdef __CUDA_ARCH__
#pragma unroll
    for (std::uint32_t& word : copy.m_words.elements) asm volatile("" : "+r"(word));
#endif
    copy.take(out);
  }

 private:
  using Bits = typename Codec<kElement>::Bits;
  static constexpr int kBytes = sizeof(Bits) * kVector;
  static constexpr int kBits = 8 * sizeof(Bits);
  static constexpr int kPerWord = sizeof(std::uint32_t) / sizeof(Bits);
  using Words = Packet<std::uint32_t, (kVector + kPerWord - 1) / kPerWord>;
  Words m_words;
};

template <Element kElement, int kVector>
__device__ void loadElements(const void* data, std::int64_t index, int count, float (&out)[kVector], int skipped = 0) {
  LoadedPacket<kElement, kVector> packet;
  packet.request(data, index, count, skipped);
  packet.take(out);
}

/// The same at any address, element by element.
template <Element kElement, int kVector>
__device__ void loadSingly(const void* data, std::int64_t index, int count, float (&out)[kVector], int skipped) {
  LoadedPacket<kElement, kVector> packet;
  packet.requestSingly(data, index, count, skipped);
  packet.take(out);
}

/// Rounds to nearest even, and stores element by element, at any address.
template <Element kElement, int kVector>
__device__ void storeSingly(void* data, std::int64_t index, int count, int skipped, const float (&values)[kVector]) {
  using Bits = typename Codec<kElement>::Bits;
  Bits* const to = static_cast<Bits*>(data) + index;
#pragma unroll
  for (int i = 0; i < kVector; ++i)
    if (i >= skipped && i < count) to[i] = Codec<kElement>::encode(values[i]);
}

/// Rounds to nearest even, and stores the first `count` elements but for the `skipped` first ones. A whole packet must
/// be aligned.
template <Element kElement, int kVector>
__device__ void storeElements(void* data, std::int64_t index, int count, const float (&values)[kVector],
                              int skipped = 0) {
  using Bits = typename Codec<kElement>::Bits;
  Bits* const to = static_cast<Bits*>(data) + index;
  if (count == kVector && skipped == 0) {
    FUSELINE_WRITES(to, sizeof(Bits) * kVector);
    if constexpr (sizeof(Bits) * kVector % sizeof(std::uint32_t) == 0) {
      Packet<std::uint32_t, sizeof(Bits) * kVector / sizeof(std::uint32_t)> packet;
      encodeWords<kElement>(values, packet.elements);
      *reinterpret_cast<decltype(packet)*>(to) = packet;
    } else {
      for (int i = 0; i < kVector; ++i) to[i] = Codec<kElement>::encode(values[i]);
    }
    return;
  }
  storeSingly<kElement>(data, index, count, skipped, values);
}

/// A whole packet that is being loaded or stored, of an element type known only at run time.
class RawPacket {
 public:
  static constexpr int kElements = 8;

  __device__ void request(Element element, const void* data, std::int64_t index) {
    const bool isWide = element == Element::F32;
    const int elementBytes = isWide ? 4 : 2;
    const auto* const from = reinterpret_cast<const Half*>(static_cast<const char*>(data) + index * elementBytes);
    FUSELINE_READS(from, kElements * elementBytes);
    m_halves[0] = from[0];
    if (isWide) m_halves[1] = from[1];
  }

  __device__ void decode(Element element, float (&out)[kElements]) const {
    switch (element) {
      case Element::F32: return decode<Element::F32>(out);
      case Element::F16: return decode<Element::F16>(out);
      case Element::BF16: return decode<Element::BF16>(out);
    }
  }

  __device__ void encode(Element element, const float (&values)[kElements]) {
    switch (element) {
      case Element::F32: return encode<Element::F32>(values);
      case Element::F16: return encode<Element::F16>(values);
      case Element::BF16: return encode<Element::BF16>(values);
    }
  }

  /// Stores in one access of 16 bytes, or in two. The element type is tested first, so that the compiler keeps the
  /// accesses whole.
  __device__ void store(Element element, void* data, std::int64_t index) const {
    const bool isWide = element == Element::F32;
    const int elementBytes = isWide ? 4 : 2;
    auto* const to = reinterpret_cast<Half*>(static_cast<char*>(data) + index * elementBytes);
    FUSELINE_WRITES(to, kElements * elementBytes);
    to[0] = m_halves[0];
    if (isWide) to[1] = m_halves[1];
  }

  /// Ends the use of the decoded values: the compiler keeps the packet instead of twice as many registers of floats.
  __device__ void holdAsItIs(Element element) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      for (std::uint32_t& word : m_halves[half].elements)
        if (half == 0 || element == Element::F32) asm volatile("" : "+r"(word));
  }

  template <Element kElement>
  __device__ void decode(float (&out)[kElements]) const {
    using Bits = typename Codec<kElement>::Bits;
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const Half& half = m_halves[i * sizeof(Bits) / sizeof(Half)];
      out[i] = Codec<kElement>::decode(bitsIn<Bits>(half.elements, i % (sizeof(Half) / sizeof(Bits))));
    }
  }

 private:
  using Half = Packet<std::uint32_t, kAccessBytes / 4>;

  template <Element kElement>
  __device__ void encode(const float (&values)[kElements]) {
    encodeWords<kElement>(values, m_halves[0].elements);
    if constexpr (kElement == Element::F32) encodeWords<kElement>(values + kElements / 2, m_halves[1].elements);
  }

  Half m_halves[2] = {};  // the second one of 32-bit elements only
};

// Elements of a type that is known at run time only.

inline __device__ void storePacketOf(Element element, void* data, std::int64_t index,
                                     const float (&values)[RawPacket::kElements]) {
  RawPacket packet;
  packet.encode(element, values);
  packet.store(element, data, index);
}

template <int kVector>
__device__ void loadElements(Element element, const void* data, std::int64_t index, int count, float (&out)[kVector],
                             int skipped = 0) {
  switch (element) {
    case Element::F32: return loadElements<Element::F32>(data, index, count, out, skipped);
    case Element::F16: return loadElements<Element::F16>(data, index, count, out, skipped);
    case Element::BF16: return loadElements<Element::BF16>(data, index, count, out, skipped);
  }
}

/// The same at any address, element by element.
template <int kVector>
__device__ void loadSingly(Element element, const void* data, std::int64_t index, int count, float (&out)[kVector],
                           int skipped) {
  switch (element) {
    case Element::F32: return loadSingly<Element::F32>(data, index, count, out, skipped);
    case Element::F16: return loadSingly<Element::F16>(data, index, count, out, skipped);
    case Element::BF16: return loadSingly<Element::BF16>(data, index, count, out, skipped);
  }
}

template <int kVector>
__device__ void storeSingly(Element element, void* data, std::int64_t index, int count, int skipped,
                            const float (&values)[kVector]) {
  switch (element) {
    case Element::F32: return storeSingly<Element::F32>(data, index, count, skipped, values);
    case Element::F16: return storeSingly<Element::F16>(data, index, count, skipped, values);
    case Element::BF16: return storeSingly<Element::BF16>(data, index, count, skipped, values);
  }
}

template <int kVector>
__device__ void storeElements(Element element, void* data, std::int64_t index, int count,
                              const float (&values)[kVector], int skipped = 0) {
  if constexpr (kVector == RawPacket::kElements)
    if (count == kVector && skipped == 0) return storePacketOf(element, data, index, values);
  switch (element) {
    case Element::F32: return storeElements<Element::F32>(data, index, count, values, skipped);
    case Element::F16: return storeElements<Element::F16>(data, index, count, values, skipped);
    case Element::BF16: return storeElements<Element::BF16>(data, index, count, values, skipped);
  }
}

template <Element kElement, int kVector>
__device__ void roundTo(float (&values)[kVector]) {
  using Bits = typename Codec<kElement>::Bits;
  constexpr int kWords = (kVector * sizeof(Bits) + 3) / 4;
  float padded[kWords * 4 / sizeof(Bits)] = {};
  std::uint32_t words[kWords];
#pragma unroll
  for (int v = 0; v < kVector; ++v) padded[v] = values[v];
  encodeWords<kElement>(padded, words);
#pragma unroll
  for (int v = 0; v < kVector; ++v) values[v] = Codec<kElement>::decode(bitsIn<Bits>(words, v));
}

/// Rounds the values as storing and loading them would.
template <int kVector>
__device__ void roundTo(Element element, float (&values)[kVector]) {
  if (element == Element::F16) return roundTo<Element::F16>(values);
  if (element == Element::BF16) return roundTo<Element::BF16>(values);
}

template <int kVector>
__device__ void fill(float value, float (&out)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) out[v] = value;
}

inline __device__ float loadElement(Element element, const void* data, std::int64_t index) {
  float value[1];
  loadElements<1>(element, data, index, 1, value);
  return value[0];
}

inline __device__ void storeElement(Element element, void* data, std::int64_t index, float value) {
  const float values[1] = {value};
  storeElements<1>(element, data, index, 1, values);
}

}  // namespace fuseline::cuda::device
