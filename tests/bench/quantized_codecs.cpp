// Times the 8 and 4 bit codecs on one thread against a copy of the same bytes in the same run.
//
// Each benchmark reports the fastest of its iterations: `GBps`, bytes read and written per second, and `share`, that
// over memcpy reading and writing as many bytes in all, timed in turns with it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantized_codecs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace fuseline::cpu {
namespace {

enum class Direction { Quantize, Dequantize };

struct Case {
  Direction direction;
  ElementFormat format;
  DType dtype;
  std::int64_t numElements;

  std::int64_t wideBytes() const { return numElements * sizeBytes(dtype); }
  std::int64_t narrowBytes() const { return codeBytes(format, numElements); }
  std::int64_t bytes() const { return wideBytes() + narrowBytes(); }
};

template <class Function>
double secondsOf(Function function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Buffers {
 public:
  explicit Buffers(const Case& test)
      : m_test(test),
        m_wide(static_cast<std::size_t>(test.wideBytes())),
        m_narrow(static_cast<std::size_t>(test.narrowBytes())),
        m_copyFrom(static_cast<std::size_t>(test.bytes() / 2), 0x3c),
        m_copyTo(m_copyFrom.size()) {
    for (std::size_t i = 0; i < m_wide.size(); ++i) m_wide[i] = static_cast<std::uint8_t>(0x30 + i % 16);
    for (std::size_t i = 0; i < m_narrow.size(); ++i) m_narrow[i] = static_cast<std::uint8_t>(i * 37);
  }

  void convert() {
    const auto n = static_cast<std::size_t>(m_test.numElements);
    if (m_test.direction == Direction::Quantize)
      quantizeFunction(m_test.format, m_test.dtype)(m_narrow.data(), m_wide.data(), 0.5F, n);
    else
      dequantizeFunction(m_test.format, m_test.dtype)(m_wide.data(), m_narrow.data(), 0.5F, n);
  }

  void copy() { std::memcpy(m_copyTo.data(), m_copyFrom.data(), m_copyTo.size()); }

 private:
  Case m_test;
  std::vector<std::uint8_t> m_wide;
  std::vector<std::uint8_t> m_narrow;
  std::vector<std::uint8_t> m_copyFrom;
  std::vector<std::uint8_t> m_copyTo;
};

void run(benchmark::State& state, const Case& test) {
  Buffers buffers(test);
  double convertSeconds = 1e9;
  double copySeconds = 1e9;
  for (auto _ : state) {
    convertSeconds = std::min(convertSeconds, secondsOf([&] { buffers.convert(); }));
    copySeconds = std::min(copySeconds, secondsOf([&] { buffers.copy(); }));
  }
  state.counters["GBps"] = static_cast<double>(test.bytes()) / convertSeconds / 1e9;
  state.counters["copy_GBps"] = static_cast<double>(test.bytes()) / copySeconds / 1e9;
  state.counters["share"] = copySeconds / convertSeconds;
}

void add(const Case& test) {
  const std::string name = std::string(test.direction == Direction::Quantize ? "quantize/" : "dequantize/") +
                           std::string(formatName(test.format)) + "/" + std::string(dtypeName(test.dtype)) + "/" +
                           std::to_string(test.numElements);
  benchmark::RegisterBenchmark(name.c_str(), [test](benchmark::State& state) { run(state, test); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(0.2);
}

void addAll() {
  for (const Direction direction : {Direction::Quantize, Direction::Dequantize})
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2, ElementFormat::E2M1})
      for (const DType dtype : {DType::F32, DType::BF16})
        for (const std::int64_t numElements : {1 << 16, 1 << 25})  // in the cache, and 80 MiB or more beyond it
          add({direction, format, dtype, numElements});
}

}  // namespace
}  // namespace fuseline::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  fuseline::cpu::addAll();
  benchmark::RunSpecifiedBenchmarks();
}
