// q k^T, softmax, p v: pass by pass, in a workspace of a bounded size.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_products.h"
#include "kernels/cuda/attention/attention_steps.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/support/workspace.h"

#include <utility>

namespace fuseline::cuda {

namespace {

struct ForwardBindings {
  HeadBinding q, k, v;
  Binding y, lse;
  AttentionRuleOperands rules;
};

class AttentionForward final : public Kernel {
 public:
  AttentionForward(AttentionProblem problem, ForwardBindings bindings, std::string why, const DeviceContext& device)
      : m_problem(std::move(problem)),
        m_bindings(std::move(bindings)),
        m_why(std::move(why)),
        m_device(device),
        m_tiles(attentionTiles(m_problem, device.maxScoreBytes)),
        m_gemms(m_problem, m_tiles) {}

  Result<void> prepare() {
    if (m_problem.layouts.k.tokens == 0 || m_problem.layouts.q.tokens == 0) return {};
    const std::int64_t rest = m_problem.layouts.q.tokens % m_tiles.rows;
    std::vector<GemmProblem> problems;
    for (const std::int64_t rows : {m_tiles.rows, rest > 0 ? rest : m_tiles.rows}) {
      problems.push_back(m_gemms.scores(rows));
      problems.push_back(m_gemms.output(rows));
    }
    Result<PreparedProducts> products = PreparedProducts::make(*m_device.gemms, problems);
    if (!products) return products.error();
    m_products = std::move(*products);
    return {};
  }

  std::size_t workspaceBytes() const override {
    return scoreBytes(DType::F32) + (isInPlace() ? 0 : scoreBytes(m_problem.dtype)) + m_products.workspaceBytes();
  }
  std::vector<std::string> ways() const override { return {m_why}; }

  void run(Pointers pointers, std::byte* workspace) override {
    m_bindings.rules.checkOnce(m_problem, pointers, m_device);
    const ScoreRules rules = m_bindings.rules.at(m_problem, pointers);
    if (rules.keys == 0) clearOutput(pointers);
    forEachPass(m_problem, m_tiles, [&](const AttentionPass& pass) { runPass(rules, pass, pointers, workspace); });
  }

 private:
  bool isInPlace() const { return m_problem.dtype == DType::F32; }
  std::size_t scoreBytes(DType dtype) const {
    return workspacePart(static_cast<std::size_t>(m_tiles.scores(m_problem) * sizeBytes(dtype)));
  }

  void runPass(const ScoreRules& rules, const AttentionPass& pass, Pointers pointers, std::byte* workspace) {
    std::byte* const scores = workspace;
    std::byte* const probabilities = isInPlace() ? scores : scores + scoreBytes(DType::F32);
    std::byte* const rest = workspace + scoreBytes(DType::F32) + (isInPlace() ? 0 : scoreBytes(m_problem.dtype));
    if (rules.keys > 0)
      m_products.multiply(m_gemms.scores(pass.rows),
                          {.a = m_bindings.q.at(pointers) + bytes(queryOffset(m_problem, m_problem.layouts.q, pass)),
                           .b = m_bindings.k.at(pointers) + bytes(keyOffset(m_problem, m_problem.layouts.k, pass)),
                           .c = scores},
                          rest, m_device.stream);
    launchAttentionSoftmax({.rules = rules,
                            .pass = pass,
                            .element = elementOf(m_problem.dtype),
                            .products = reinterpret_cast<const float*>(scores),
                            .probabilities = probabilities,
                            .lse = reinterpret_cast<float*>(m_bindings.lse.at(pointers))},
                           m_device.stream);
    if (rules.keys == 0) return;
    m_products.multiply(m_gemms.output(pass.rows),
                        {.a = probabilities,
                         .b = m_bindings.v.at(pointers) + bytes(keyOffset(m_problem, m_problem.layouts.v, pass)),
                         .c = m_bindings.y.at(pointers) + bytes(queryOffset(m_problem, m_problem.layouts.y, pass))},
                        rest, m_device.stream);
    MaskedProduct product = maskedProduct(m_problem, rules, pass, m_problem.layouts.v, m_problem.layouts.y);
    product.scores = probabilities;
    product.right = m_bindings.v.at(pointers);
    product.result = m_bindings.y.at(pointers);
    launchMaskedProduct(product, m_device.stream);
  }

  std::int64_t bytes(std::int64_t elements) const { return elements * sizeBytes(m_problem.dtype); }

  void clearOutput(Pointers pointers) const {
    launchHeadRows(allHeadRows(m_problem, m_problem.layouts.y, m_bindings.y.at(pointers)), m_device.stream);
  }

  AttentionProblem m_problem;
  ForwardBindings m_bindings;
  std::string m_why;
  const DeviceContext& m_device;
  AttentionTiles m_tiles;
  AttentionGemms m_gemms;
  PreparedProducts m_products;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeAttentionForward(const CompileRequest& request, const AttentionProblem& problem,
                                                     std::string why) {
  const AttentionPlaces& places = problem.places;
  for (const AttentionPlaces::Heads& heads : places.heads)
    if (const Result<Binding> input = requireOperand(request, heads.input); !input) return input.error();
  const Result<Binding> y = requireOperand(request, {places.attention, OperandKind::Output, 0});
  if (!y) return y.error();
  ForwardBindings bindings{.q = findHeads(request, problem, AttentionForm::kQuery),
                           .k = findHeads(request, problem, AttentionForm::kKey),
                           .v = findHeads(request, problem, AttentionForm::kValue),
                           .y = *y,
                           .lse = findOperand(request, {places.attention, OperandKind::Residual, AttentionForm::kLse}),
                           .rules = {request, problem}};
  auto kernel = std::make_unique<AttentionForward>(problem, std::move(bindings), std::move(why), request.device);
  if (Result<void> prepared = kernel->prepare(); !prepared) return prepared.error();
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuseline::cuda
