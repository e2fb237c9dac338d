// Kernel "unpermute_add": the weighted sum of each token's rows and of the tensors added behind it, rounded once.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/moved_rows.h"

#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cpu::kernels {

KernelDef unpermute_add();

namespace {

class UnpermuteAdd final : public Kernel {
 public:
  UnpermuteAdd(UnpermuteAddStep step, int threads) : m(std::move(step)), m_threads(threads) {}

  std::size_t workspaceBytes() const override { return movedRowsBytes(m.y.spec.cols(), m_threads); }

  void run(Pointers pointers, std::byte* workspace) override {
    if (const auto slots = slotsOfRows(integersOf(m.map, pointers), m.x.spec.rows()); !slots)
      throw std::runtime_error(slots.error().message);
    std::vector<const std::byte*> addends;
    for (const Binding& addend : m.addends)
      if (addend) addends.push_back(addend.at(pointers));
    sumRows({m.x.at(pointers), m.y.at(pointers), m.y.spec.cols(), m.y.spec.dtype, m_threads},
            integersOf(m.map, pointers), m.map.spec.cols(), numbersOf(m.probs, pointers), workspace, addends);
  }

 private:
  UnpermuteAddStep m;
  int m_threads;
};

Result<std::unique_ptr<Kernel>> compileUnpermuteAdd(const CompileRequest& request) {
  Result<UnpermuteAddStep> step = unpermuteAddStep(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<UnpermuteAdd>(std::move(*step), request.settings.threads));
}

}  // namespace

KernelDef unpermute_add() {
  return {.name = "unpermute_add", .phases = {Phase::Forward}, .compile = compileUnpermuteAdd};
}

}  // namespace fuseline::cpu::kernels
