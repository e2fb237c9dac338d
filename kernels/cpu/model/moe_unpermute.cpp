// Kernel "MoEUnpermute": the weighted sum of each token's rows; backward a scaled copy for each row and dot products.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"
#include "kernels/common/moe_step.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/moved_rows.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fuseline::cpu::kernels {

KernelDef moe_unpermute();

namespace {

/// The step, and the threads for it.
struct UnpermuteParts : UnpermuteStep {
  int threads = 1;
};

/// Throws for a map that is not legal.
std::vector<std::int64_t> checkedSlots(const UnpermuteParts& m, std::int64_t numRows, Pointers pointers) {
  Result<std::vector<std::int64_t>> slots = slotsOfRows(integersOf(m.map, pointers), numRows);
  if (!slots) throw std::runtime_error(slots.error().message);
  return std::move(*slots);
}

class UnpermuteForward final : public Kernel {
 public:
  explicit UnpermuteForward(UnpermuteParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override { return movedRowsBytes(m.y.spec.cols(), m.threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    (void)checkedSlots(m, m.x.spec.rows(), pointers);
    sumRows({m.x.at(pointers), m.y.at(pointers), m.y.spec.cols(), m.y.spec.dtype, m.threads},
            integersOf(m.map, pointers), m.map.spec.cols(), numbersOf(m.probs, pointers), workspace);
  }

 private:
  UnpermuteParts m;
};

class UnpermuteBackward final : public Kernel {
 public:
  explicit UnpermuteBackward(UnpermuteParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override { return movedRowsBytes(m.dy.spec.cols(), m.threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    if (m.dx) writeRows(pointers, workspace);
    if (m.dProbs) writeProbs(pointers);
  }

 private:
  void writeRows(Pointers pointers, std::byte* workspace) const {
    const std::vector<std::int64_t> slots = checkedSlots(m, m.dx.spec.rows(), pointers);
    const MovedRows rows{m.dy.at(pointers), m.dx.at(pointers), m.dy.spec.cols(), m.dy.spec.dtype, m.threads};
    const std::int64_t terms = m.map.spec.cols();
    if (m.probs)
      scaleRows(rows, slots, terms, numbersOf(m.probs, pointers), workspace);
    else
      copyRows(rows, slots, terms);
  }

  void writeProbs(Pointers pointers) const {
    (void)checkedSlots(m, m.x.spec.rows(), pointers);
    const std::span<const std::int64_t> map = integersOf(m.map, pointers);
    const std::int64_t width = m.x.spec.cols();
    const std::int64_t rowBytes = width * sizeBytes(m.x.spec.dtype);
    const HeadRowFunctions& functions = headRowFunctions(m.x.spec.dtype);
    std::vector<double> dots(map.size());
    const int threads = m.threads;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::size_t slot = 0; slot < map.size(); ++slot) {
      if (map[slot] < 0) continue;
      const auto token = static_cast<std::int64_t>(slot) / m.map.spec.cols();
      float dot = 0.0F;
      functions.dot({m.x.at(pointers) + map[slot] * rowBytes, width}, {m.dy.at(pointers) + token * rowBytes, width}, 1,
                    width, &dot);
      dots[slot] = static_cast<double>(dot);
    }
    encode(dots, m.dProbs.spec.dtype, m.dProbs.at(pointers));
  }

  UnpermuteParts m;
};

Result<std::unique_ptr<Kernel>> compileUnpermute(const CompileRequest& request) {
  Result<UnpermuteStep> step = unpermuteStep(request);
  if (!step) return step.error();
  UnpermuteParts parts{std::move(*step), request.settings.threads};
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<UnpermuteForward>(std::move(parts)));
  return std::unique_ptr<Kernel>(std::make_unique<UnpermuteBackward>(std::move(parts)));
}

}  // namespace

KernelDef moe_unpermute() {
  return {
      .name = "MoEUnpermute",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileUnpermute,
  };
}

}  // namespace fuseline::cpu::kernels
