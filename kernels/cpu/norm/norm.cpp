// Splits norms over threads and adds up their parameter gradients.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm.h"

#include "kernels/cpu/elementwise/strip_functions.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace fuseline::cpu {

namespace {

/// Partial sums of parameter gradients are added to the thread's total after this number of rows, which bounds their
/// rounding error.
constexpr std::int64_t kSumBlockRows = 64;
/// Minimum number of elements per thread: with fewer, waking a thread does not pay.
constexpr std::int64_t kElementsPerThread = 8192;

std::int64_t roundUp16(std::int64_t floats) { return (floats + 15) / 16 * 16; }

/// Float32 vectors of a norm in scratch memory, each [cols] long.
class Vectors {
 public:
  Vectors(std::byte* workspace, std::int64_t cols)
      : m_base(reinterpret_cast<float*>(workspace)), m_stride(roundUp16(cols)) {}
  float* at(std::int64_t index) const { return m_base + index * m_stride; }
  static std::size_t bytes(std::int64_t cols, std::int64_t count) {
    return static_cast<std::size_t>(roundUp16(cols) * count) * sizeof(float);
  }

 private:
  float* m_base;
  std::int64_t m_stride;
};

// Layout of the scratch memory: two vectors for gamma and beta, then kVectorsPerThread for each thread.
constexpr std::int64_t kGamma = 0;
constexpr std::int64_t kBeta = 1;
constexpr std::int64_t kShared = 2;
enum ThreadVector {
  BlockGamma,
  BlockBeta,
  TotalGamma,
  TotalBeta,
  RowX,
  RowY,
  RowExtra,
  RowDx,
  RowSum,
  kVectorsPerThread
};

std::int64_t vectorOf(int thread, ThreadVector which) { return kShared + thread * kVectorsPerThread + which; }

int threadsFor(const NormProblem& problem) {
  const std::int64_t worth = problem.rows * problem.cols / kElementsPerThread;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(worth, problem.rows), 1, problem.threads));
}

template <class Share>
void runThreads(int threads, std::int64_t rows, Share share) {
  if (threads == 1) return share(0, std::int64_t{0}, rows);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread)
    share(thread, rows * thread / threads, rows * (thread + 1) / threads);
}

/// The same, but a thread's rows are whole blocks.
template <class Share>
void runThreads(int threads, std::int64_t rows, std::int64_t blockRows, Share share) {
  runThreads(threads, (rows + blockRows - 1) / blockRows, [&](int thread, std::int64_t first, std::int64_t last) {
    share(thread, first * blockRows, std::min(last * blockRows, rows));
  });
}

void decodeParameters(const NormProblem& problem, const std::byte* gamma, const std::byte* beta,
                      const Vectors& vectors) {
  const auto cols = static_cast<std::size_t>(problem.cols);
  if (gamma) decodeFunction(problem.parameterDType)(vectors.at(kGamma), gamma, nullptr, cols);
  if (problem.isGammaZeroCentred)
    for (std::size_t col = 0; col < cols; ++col) vectors.at(kGamma)[col] += 1.0F;
  if (beta) decodeFunction(problem.parameterDType)(vectors.at(kBeta), beta, nullptr, cols);
}

const std::byte* rowOf(const std::byte* data, std::int64_t row, std::int64_t cols, DType dtype) {
  return data + row * cols * sizeBytes(dtype);
}

std::byte* rowOf(std::byte* data, std::int64_t row, std::int64_t cols, DType dtype) {
  return data + row * cols * sizeBytes(dtype);
}

NormForwardRows rowsTask(const NormProblem& problem, const NormForwardPointers& pointers, const Vectors& vectors) {
  return {.x = pointers.x,
          .y = pointers.y,
          .gamma = vectors.at(kGamma),
          .beta = vectors.at(kBeta),
          .mean = pointers.mean,
          .rstd = pointers.rstd,
          .cols = problem.cols,
          .rowOfX = problem.rowOfX,
          .eps = problem.eps};
}

/// One row with x anywhere in memory; y goes through a float32 buffer in the cache if its dtype differs.
void forwardRow(const NormProblem& problem, const NormForwardPointers& pointers, const Vectors& vectors, int thread,
                std::int64_t row, const std::byte* x) {
  const auto cols = static_cast<std::size_t>(problem.cols);
  std::byte* const y = rowOf(pointers.y, row, problem.cols, problem.yDType);
  NormForwardRows task = rowsTask(problem, pointers, vectors);
  task.mean = pointers.mean ? pointers.mean + row : nullptr;
  task.rstd = pointers.rstd ? pointers.rstd + row : nullptr;
  task.x = x;
  task.y = y;
  if (problem.xDType == problem.yDType) return normForwardFunction(problem.kind, problem.xDType)(task, 0, 1);
  decodeFunction(problem.xDType)(vectors.at(vectorOf(thread, RowX)), x, nullptr, cols);
  task.x = vectors.at(vectorOf(thread, RowX));
  task.y = vectors.at(vectorOf(thread, RowY));
  normForwardFunction(problem.kind, DType::F32)(task, 0, 1);
  encodeFunction(problem.yDType)(y, task.y, nullptr, cols);
}

/// The sum of one row, in its place in memory or in a row of scratch.
const std::byte* addRow(const NormProblem& problem, const NormAddend& addend, const Vectors& vectors, int thread,
                        std::int64_t row) {
  const auto cols = static_cast<std::size_t>(problem.cols);
  std::byte* const sum = addend.sum ? rowOf(addend.sum, row, problem.cols, problem.xDType)
                                    : reinterpret_cast<std::byte*>(vectors.at(vectorOf(thread, RowSum)));
  const std::byte* const a = rowOf(addend.a, row, problem.cols, addend.aDType);
  const std::byte* const b = rowOf(addend.b, row, problem.cols, addend.bDType);
  if (addend.aDType == problem.xDType && addend.bDType == problem.xDType) {
    addFunction(problem.xDType)(a, b, sum, cols);
    return sum;
  }
  float* const left = vectors.at(vectorOf(thread, RowX));
  float* const right = vectors.at(vectorOf(thread, RowY));
  decodeFunction(addend.aDType)(left, a, nullptr, cols);
  decodeFunction(addend.bDType)(right, b, nullptr, cols);
  addFunction(DType::F32)(left, right, left, cols);
  encodeFunction(problem.xDType)(sum, left, nullptr, cols);
  return sum;
}

const std::byte* lookUpRow(const NormProblem& problem, const NormLookUp& lookUp, std::int64_t row) {
  const std::byte* const from = rowOf(lookUp.table, lookUp.rows.at(lookUp.ids, row), problem.cols, problem.xDType);
  if (lookUp.copy)
    std::memcpy(rowOf(lookUp.copy, row, problem.cols, problem.xDType), from,
                static_cast<std::size_t>(problem.cols * sizeBytes(problem.xDType)));
  return from;
}

void backwardMixedRow(const NormProblem& problem, const NormBackwardPointers& pointers, const NormBackwardRows& rows,
                      const Vectors& vectors, int thread, std::int64_t row) {
  const auto cols = static_cast<std::size_t>(problem.cols);
  const auto decode = [&](ThreadVector which, const std::byte* from, DType dtype, std::int64_t stride) {
    if (from)
      decodeFunction(dtype)(vectors.at(vectorOf(thread, which)), rowOf(from, row, stride, dtype), nullptr, cols);
    return from ? vectors.at(vectorOf(thread, which)) : nullptr;
  };
  NormBackwardRows task = rows;
  task.x = decode(RowX, pointers.x, problem.xDType, problem.strideOfX());
  task.dy = decode(RowY, pointers.dy, problem.yDType, problem.cols);
  task.extra = decode(RowExtra, pointers.extra, problem.xDType, problem.cols);
  task.dx = pointers.dx ? vectors.at(vectorOf(thread, RowDx)) : nullptr;
  task.mean = pointers.mean ? pointers.mean + row : nullptr;
  task.rstd = pointers.rstd + row;
  normBackwardFunction(problem.kind, DType::F32)(task, 0, 1);
  if (!pointers.dx) return;
  std::byte* const dx = rowOf(pointers.dx, row, problem.strideOfDx(), problem.xDType);
  encodeFunction(problem.xDType)(dx, task.dx, nullptr, cols);
}

void moveToTotal(float* block, float* total, std::int64_t cols) {
  for (std::int64_t col = 0; col < cols; ++col) total[col] += block[col];
  std::fill_n(block, cols, 0.0F);
}

void backwardShare(const NormProblem& problem, const NormBackwardPointers& pointers, const Vectors& vectors, int thread,
                   std::int64_t first, std::int64_t last) {
  for (const ThreadVector sum : {BlockGamma, BlockBeta, TotalGamma, TotalBeta})
    std::fill_n(vectors.at(vectorOf(thread, sum)), problem.cols, 0.0F);
  float* const dgamma = pointers.dgamma ? vectors.at(vectorOf(thread, BlockGamma)) : nullptr;
  float* const dbeta = pointers.dbeta ? vectors.at(vectorOf(thread, BlockBeta)) : nullptr;
  NormBackwardRows rows{.x = pointers.x,
                        .dy = pointers.dy,
                        .extra = pointers.extra,
                        .dx = pointers.dx,
                        .gamma = vectors.at(kGamma),
                        .mean = pointers.mean,
                        .rstd = pointers.rstd,
                        .dgamma = dgamma,
                        .dbeta = dbeta,
                        .cols = problem.cols,
                        .rowOfX = problem.rowOfX,
                        .rowOfDx = problem.rowOfDx};
  const RowSink* const sink = pointers.sink;
  const std::int64_t height = sink ? sink->blockRows : kSumBlockRows;
  NormBackwardPointers at = pointers;
  for (std::int64_t block = first; block < last; block += height) {
    const std::int64_t end = std::min(block + height, last);
    if (sink) rows.dx = at.dx = sink->rowZero(thread, block);
    if (problem.xDType == problem.yDType)
      normBackwardFunction(problem.kind, problem.xDType)(rows, block, end);
    else
      for (std::int64_t row = block; row < end; ++row) backwardMixedRow(problem, at, rows, vectors, thread, row);
    if (sink) sink->finish(thread, block, end - block);
    if (dgamma) moveToTotal(dgamma, vectors.at(vectorOf(thread, TotalGamma)), problem.cols);
    if (dbeta) moveToTotal(dbeta, vectors.at(vectorOf(thread, TotalBeta)), problem.cols);
  }
}

void storeParameterGradient(const NormProblem& problem, std::byte* to, const Vectors& vectors, int threads,
                            ThreadVector which) {
  if (!to) return;
  float* const sum = vectors.at(vectorOf(0, which));
  for (int thread = 1; thread < threads; ++thread) {
    const float* const part = vectors.at(vectorOf(thread, which));
    for (std::int64_t col = 0; col < problem.cols; ++col) sum[col] += part[col];
  }
  encodeFunction(problem.parameterDType)(to, sum, nullptr, static_cast<std::size_t>(problem.cols));
}

}  // namespace

std::size_t normForwardWorkspaceBytes(const NormProblem& problem) {
  return Vectors::bytes(problem.cols, kShared + std::int64_t{problem.threads} * kVectorsPerThread);
}

std::size_t normBackwardWorkspaceBytes(const NormProblem& problem) { return normForwardWorkspaceBytes(problem); }

namespace {

/// rowsOf(thread, first, last, pointers) produces the rows; y is in the pointers.
template <class Rows>
void forwardRows(const NormProblem& problem, const NormForwardPointers& pointers, Rows rowsOf) {
  const RowSink* const sink = pointers.sink;
  if (!sink)
    return runThreads(threadsFor(problem), problem.rows, [&](int thread, std::int64_t first, std::int64_t last) {
      rowsOf(thread, first, last, pointers);
    });
  const auto drained = [&](int thread, std::int64_t first, std::int64_t last) {
    NormForwardPointers block = pointers;
    for (std::int64_t row = first; row < last; row += sink->blockRows) {
      const std::int64_t end = std::min(row + sink->blockRows, last);
      block.y = sink->rowZero(thread, row);
      rowsOf(thread, row, end, block);
      sink->finish(thread, row, end - row);
    }
  };
  runThreads(threadsFor(problem), problem.rows, sink->blockRows, drained);
}

}  // namespace

void normForward(const NormProblem& problem, const NormForwardPointers& pointers, std::byte* workspace) {
  if (problem.rows == 0 || problem.cols == 0) return;
  const Vectors vectors(workspace, problem.cols);
  decodeParameters(problem, pointers.gamma, pointers.beta, vectors);
  forwardRows(
      problem, pointers, [&](int thread, std::int64_t first, std::int64_t last, const NormForwardPointers& block) {
        if (problem.xDType == problem.yDType)
          return normForwardFunction(problem.kind, problem.xDType)(rowsTask(problem, block, vectors), first, last);
        for (std::int64_t row = first; row < last; ++row)
          forwardRow(problem, block, vectors, thread, row, rowOf(block.x, row, problem.strideOfX(), problem.xDType));
      });
}

namespace {

/// makeRow(vectors, thread, row): where x is.
template <class MakeRow>
void madeNormForward(const NormProblem& problem, const NormForwardPointers& pointers, std::byte* workspace,
                     const MakeRow& makeRow) {
  if (problem.rows == 0 || problem.cols == 0) return;
  const Vectors vectors(workspace, problem.cols);
  decodeParameters(problem, pointers.gamma, pointers.beta, vectors);
  forwardRows(problem, pointers,
              [&](int thread, std::int64_t first, std::int64_t last, const NormForwardPointers& block) {
                for (std::int64_t row = first; row < last; ++row)
                  forwardRow(problem, block, vectors, thread, row, makeRow(vectors, thread, row));
              });
}

}  // namespace

void addNormForward(const NormProblem& problem, const NormAddend& addend, const NormForwardPointers& pointers,
                    std::byte* workspace) {
  madeNormForward(problem, pointers, workspace, [&](const Vectors& vectors, int thread, std::int64_t row) {
    return addRow(problem, addend, vectors, thread, row);
  });
}

void lookUpNormForward(const NormProblem& problem, const NormLookUp& lookUp, const NormForwardPointers& pointers,
                       std::byte* workspace) {
  lookUp.rows.check(lookUp.ids);
  madeNormForward(problem, pointers, workspace,
                  [&](const Vectors&, int, std::int64_t row) { return lookUpRow(problem, lookUp, row); });
}

void normBackward(const NormProblem& problem, const NormBackwardPointers& pointers, std::byte* workspace) {
  if (problem.cols == 0) return;
  const Vectors vectors(workspace, problem.cols);
  decodeParameters(problem, pointers.gamma, nullptr, vectors);
  const int threads = threadsFor(problem);
  const std::int64_t blockRows = pointers.sink ? pointers.sink->blockRows : 1;
  runThreads(threads, problem.rows, blockRows, [&](int thread, std::int64_t first, std::int64_t last) {
    backwardShare(problem, pointers, vectors, thread, first, last);
  });
  storeParameterGradient(problem, pointers.dgamma, vectors, threads, TotalGamma);
  storeParameterGradient(problem, pointers.dbeta, vectors, threads, TotalBeta);
}

}  // namespace fuseline::cpu
