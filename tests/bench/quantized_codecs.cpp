// Times quantization against a copy of the same number of bytes, interleaved: the 8 and 4 bit codecs on one thread, and
// the kernels that write and read the quantized tensors of recipes on all of them.
//
// Usage: bench_quantized_codecs [part of a name [rounds]]. A line has bytes read and written per second (median, half
// the interquartile range), the same of memcpy, and the share: the median over rounds of copy time over time, with its
// 95 % confidence interval.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantized_codecs.h"
#include "core/numerics/bf16.h"
#include "core/profile/stats.h"
#include "core/quant/recipe.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/quantize/quantized_copy.h"
#include "tests/bench/timing.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <omp.h>

namespace fuseline::cpu {
namespace {

/// Memory as the backend gives it: on huge pages.
class Bytes {
 public:
  explicit Bytes(std::int64_t size)
      : m_memory(*allocateCpuMemory(static_cast<std::size_t>(size))), m_size(static_cast<std::size_t>(size)) {}
  std::byte* data() const { return m_memory->data(); }
  std::size_t size() const { return m_size; }

 private:
  std::unique_ptr<DeviceMemory> m_memory;
  std::size_t m_size;
};

Bytes patterned(std::int64_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<std::byte>(0x30 + i * 37 % 16);
  return bytes;
}

/// Numbers in bf16 from -1 to 1, which cover the range of quantization: subnormal results take separate paths.
Bytes randomNumbers(std::int64_t count) {
  Bytes bytes(count * sizeBytes(DType::BF16));
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
  auto* const halves = reinterpret_cast<std::uint16_t*>(bytes.data());
  for (std::int64_t i = 0; i < count; ++i) halves[i] = floatToBf16(numbers(random));
  return bytes;
}

/// A timed task. bytes: read and written, in total.
struct Task {
  std::string name;
  std::int64_t bytes = 0;
  int threads = 1;
  /// Allocates the task's memory, and returns the task.
  std::function<std::function<void()>()> prepare;
};

/// Reads and writes the number of bytes of a task, on the same number of threads.
class Copy {
 public:
  explicit Copy(const Task& task) : m_threads(task.threads), m_from(patterned(task.bytes / 2)), m_to(task.bytes / 2) {}

  void run() {
    const auto size = m_from.size();
    const auto parts = static_cast<std::size_t>(m_threads);
#pragma omp parallel for num_threads(m_threads) schedule(static, 1) if (m_threads > 1)
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t first = size * part / parts;
      std::memcpy(m_to.data() + first, m_from.data() + first, size * (part + 1) / parts - first);
    }
  }

 private:
  int m_threads;
  Bytes m_from;
  Bytes m_to;
};

std::string rateText(const Task& task, const std::vector<double>& seconds) {
  const SampleStats stats = summarize(seconds);
  return fmt::format("{:7.2f} GB/s +-{:4.1f} %", static_cast<double>(task.bytes) / stats.median / 1e9,
                     stats.spreadPercent());
}

void measure(const Task& task, int rounds) {
  Copy copy(task);
  std::vector<double> taskSeconds;
  std::vector<double> copySeconds;
  const std::function<void()> run = task.prepare();
  run();
  copy.run();
  for (int round = 0; round < rounds; ++round) {
    taskSeconds.push_back(secondsOf(run));
    copySeconds.push_back(secondsOf([&] { copy.run(); }));
  }
  const RatioStats share = compareRounds(copySeconds, taskSeconds);
  fmt::print("{:<44} {:>2} {} {} {:5.2f} [{:4.2f}, {:4.2f}]\n", task.name, task.threads, rateText(task, taskSeconds),
             rateText(task, copySeconds), share.median, share.low, share.high);
}

// ---- codecs

struct CodecBuffers {
  Bytes wide;
  Bytes codes;
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(codes.data()); }
};

Task codecTask(bool isQuantizing, ElementFormat format, DType dtype, std::int64_t n) {
  const std::int64_t wideBytes = n * sizeBytes(dtype);
  const std::int64_t narrowBytes = codeBytes(format, n);
  const std::string verb = isQuantizing ? "encode" : "decode";
  return {.name = fmt::format("{} {} {} {}", verb, formatName(format), dtypeName(dtype), n),
          .bytes = wideBytes + narrowBytes,
          .prepare = [=]() -> std::function<void()> {
            auto buffers = std::make_shared<CodecBuffers>(patterned(wideBytes), patterned(narrowBytes));
            const auto count = static_cast<std::size_t>(n);
            if (isQuantizing)
              return [=, encode = codecsOf(format, dtype).quantize] {
                encode(buffers->bytes(), buffers->wide.data(), 0.5F, count);
              };
            return [=, decode = codecsOf(format, dtype).dequantize] {
              decode(buffers->wide.data(), buffers->bytes(), 1.0F, count);
            };
          }};
}

std::vector<Task> codecTasks() {
  std::vector<Task> tasks;
  for (const bool isQuantizing : {true, false})
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2, ElementFormat::E2M1})
      for (const DType dtype : {DType::F32, DType::BF16})
        for (const std::int64_t n : {1 << 16, 1 << 25})  // in the cache, and 80 MiB or more beyond it
          tasks.push_back(codecTask(isQuantizing, format, dtype, n));
  return tasks;
}

// ---- kernels

/// Quantizes a bf16 tensor in both directions as a recipe requires, including its amax if the recipe needs one.
Task quantizeTask(const std::string& name, const TensorSpec& x, const TensorQuantizers& quantizers) {
  TensorSpec rowwise = x;
  TensorSpec columnwise = x;
  rowwise.quantized = formOf(*quantizers.rowwise, Usage::Rowwise);
  columnwise.quantized = formOf(*quantizers.columnwise, Usage::Columnwise);
  const bool needsAmax =
      quantizers.rowwise->scaling == Scaling::PerTensor || quantizers.rowwise->format == ElementFormat::E2M1;
  return {
      .name = fmt::format("quantize {}", name),
      .bytes = x.bytes() + rowwise.bytes() + columnwise.bytes(),
      .threads = omp_get_max_threads(),
      .prepare = [=]() -> std::function<void()> {
        auto source = std::make_shared<Bytes>(randomNumbers(x.numElements()));
        auto rows = std::make_shared<Bytes>(static_cast<std::size_t>(rowwise.bytes()));
        auto columns = std::make_shared<Bytes>(static_cast<std::size_t>(columnwise.bytes()));
        return [=] {
          const float amax = needsAmax ? amaxOf(source->data(), x) : 0.0F;
          makeCopies(source->data(), x, quantizers, {}, amax, {rowwise, rows->data()}, {columnwise, columns->data()});
        };
      }};
}

/// Dequantizes such a tensor.
Task dequantizeTask(const std::string& name, const TensorSpec& x, const QuantizerSpec& quantizer) {
  TensorSpec copy = x;
  copy.quantized = formOf(quantizer, Usage::Rowwise);
  return {.name = fmt::format("dequantize {}", name),
          .bytes = x.bytes() + copy.bytes(),
          .threads = omp_get_max_threads(),
          .prepare = [=]() -> std::function<void()> {
            auto memory = std::make_shared<Bytes>(patterned(copy.bytes()));
            auto out = std::make_shared<Bytes>(static_cast<std::size_t>(x.bytes()));
            return [=] { dequantizeCopy(memory->data(), copy, x.dtype, out->data()); };
          }};
}

std::vector<Task> kernelTasks() {
  const TensorSpec x{DType::BF16, {8192, 4096}};
  std::vector<Task> tasks;
  for (const RecipeDefinition& definition : builtinRecipes()) {
    const Recipe recipe = *Recipe::create(definition);
    const auto rowwise = recipe.quantizerFor({TensorType::Input, GemmRole::Fprop});
    const auto columnwise = recipe.quantizerFor({TensorType::Input, GemmRole::Wgrad});
    if (!rowwise || !columnwise) continue;
    tasks.push_back(quantizeTask(definition.name, x, {.rowwise = rowwise, .columnwise = columnwise}));
    tasks.push_back(dequantizeTask(definition.name, x, *rowwise));
  }
  return tasks;
}

void runAll(const std::string& filter, int rounds) {
  fmt::print("{:<44} {:>2} {:<21} {:<21} share of copy [95 %]\n", "", "th", "this", "copy");
  for (const auto& tasks : {codecTasks, kernelTasks})
    for (const Task& task : tasks())
      if (task.name.find(filter) != std::string::npos) measure(task, rounds);
}

}  // namespace
}  // namespace fuseline::cpu

int main(int argc, char** argv) {
  constexpr int kRounds = 31;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line as soon as it is measured
  fuseline::cpu::runAll(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : kRounds);
}
