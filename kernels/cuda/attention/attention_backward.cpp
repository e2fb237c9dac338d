// The scores computed again from the log-sum-exp of their rows, their gradient, and four products: pass by pass.
// Gradients of keys and values that several passes add up are float32 until the last one.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_products.h"
#include "kernels/cuda/attention/attention_steps.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/support/workspace.h"

#include <array>
#include <utility>

namespace fuseline::cuda {

namespace {

struct BackwardBindings {
  BackwardBindings(const CompileRequest& request, const AttentionProblem& problem)
      : y(findOwn(request, problem, OperandKind::Output, 0)),
        dy(findOwn(request, problem, OperandKind::GradOutput, 0)),
        lse(findOwn(request, problem, OperandKind::Residual, AttentionForm::kLse)),
        dbias(findOwn(request, problem, OperandKind::GradInput, problem.form.biasSlot)),
        doffset(findOwn(request, problem, OperandKind::GradParameter, AttentionForm::kOffset)),
        rules(request, problem) {
    for (std::size_t slot = 0; slot < 3; ++slot) {
      inputs[slot] = findHeads(request, problem, slot);
      gradients[slot] = findHeadGradient(request, problem, slot);
    }
  }

  /// slot -1: absent.
  static Binding findOwn(const CompileRequest& request, const AttentionProblem& problem, OperandKind kind, int slot) {
    return slot < 0 ? Binding() : findOperand(request, {problem.places.attention, kind, slot});
  }

  std::array<HeadBinding, 3> inputs;     // x, k, v
  std::array<HeadBinding, 3> gradients;  // absent: not wanted
  Binding y, dy, lse, dbias, doffset;
  AttentionRuleOperands rules;
};

constexpr std::size_t kQ = AttentionForm::kQuery;
constexpr std::size_t kK = AttentionForm::kKey;
constexpr std::size_t kV = AttentionForm::kValue;

/// Parts of the workspace by their sizes, one after the other.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(std::byte* begin) : m_begin(begin) {}
  std::byte* take(std::size_t bytes) {
    std::byte* const part = m_begin ? m_begin + m_size : nullptr;
    m_size += workspacePart(bytes);
    return bytes == 0 ? nullptr : part;
  }
  std::size_t size() const { return m_size; }

 private:
  std::byte* m_begin;
  std::size_t m_size = 0;
};

class AttentionBackward final : public Kernel {
 public:
  AttentionBackward(AttentionProblem problem, BackwardBindings bindings, std::string why, const DeviceContext& device)
      : m_problem(std::move(problem)),
        m_bindings(std::move(bindings)),
        m_why(std::move(why)),
        m_device(device),
        m_tiles(attentionTiles(m_problem, device.maxScoreBytes)),
        m_gemms(m_problem, m_tiles) {}

  Result<void> prepare() {
    if (isEmpty()) return {};
    const std::int64_t rest = m_problem.layouts.q.tokens % m_tiles.rows;
    std::vector<GemmProblem> problems;
    for (const std::int64_t rows : {m_tiles.rows, rest > 0 ? rest : m_tiles.rows}) {
      problems.push_back(m_gemms.scores(rows));
      problems.push_back(m_gemms.gradProbabilities(rows));
      if (m_bindings.gradients[kQ]) problems.push_back(m_gemms.gradQueries(rows));
      for (const bool isAdded : {false, true}) {
        if (isAdded && !hasSums()) continue;
        if (m_bindings.gradients[kK]) problems.push_back(m_gemms.gradKeys(rows, hasSums(), isAdded));
        if (m_bindings.gradients[kV]) problems.push_back(m_gemms.gradValues(rows, hasSums(), isAdded));
      }
    }
    Result<PreparedProducts> products = PreparedProducts::make(*m_device.gemms, problems);
    if (!products) return products.error();
    m_products = std::move(*products);
    return {};
  }

  std::size_t workspaceBytes() const override { return partsAt(nullptr).size + m_products.workspaceBytes(); }
  std::vector<std::string> ways() const override { return {m_why}; }

  void run(Pointers pointers, std::byte* workspace) override {
    m_bindings.rules.checkOnce(m_problem, pointers, m_device);
    const ScoreRules rules = m_bindings.rules.at(m_problem, pointers);
    const Parts parts = partsAt(workspace);
    sumDeltas(parts, pointers);
    if (m_bindings.doffset)
      launchSinkGradient(rules, m_problem.layouts.q.batch, lseAt(pointers), parts.deltas,
                         reinterpret_cast<float*>(m_bindings.doffset.at(pointers)), m_device.stream);
    if (m_bindings.dbias) clearBias(parts, pointers);
    if (isEmpty()) return clearGradients(pointers);
    forEachPass(m_problem, m_tiles,
                [&](const AttentionPass& pass) { runPass(rules, pass, parts, pointers, workspace); });
    if (m_bindings.dbias && parts.bias) storeBias(parts, pointers);
  }

 private:
  struct Parts {
    float* products = nullptr;  // of q and k; with float32 also the probabilities
    float* gradProbabilities = nullptr;
    std::byte* probabilities = nullptr;
    std::byte* gradProducts = nullptr;
    float* deltas = nullptr;
    float* keys = nullptr;  // sums of gradients; null: they are written as they stand
    float* values = nullptr;
    float* bias = nullptr;  // null: in the gradient itself
    std::size_t size = 0;
  };

  Parts partsAt(std::byte* workspace) const {
    WorkspaceParts parts(workspace);
    const auto floats = [&](std::int64_t count) {
      return reinterpret_cast<float*>(parts.take(static_cast<std::size_t>(count) * sizeof(float)));
    };
    const std::int64_t scores = m_tiles.scores(m_problem);
    Parts taken{.products = floats(scores), .gradProbabilities = floats(scores)};
    if (m_problem.dtype == DType::F32) {
      taken.probabilities = reinterpret_cast<std::byte*>(taken.products);
      taken.gradProducts = reinterpret_cast<std::byte*>(taken.gradProbabilities);
    } else {
      taken.probabilities = parts.take(static_cast<std::size_t>(bytes(scores)));
      taken.gradProducts = parts.take(static_cast<std::size_t>(bytes(scores)));
    }
    const TokenLayout& q = m_problem.layouts.q;
    taken.deltas = floats(q.batch * q.tokens * q.heads);
    const std::int64_t keyRows = hasSums() ? m_tiles.units * m_problem.layouts.k.tokens : 0;
    taken.keys = floats(m_bindings.gradients[kK] ? keyRows * m_problem.form.qkChannels : 0);
    taken.values = floats(m_bindings.gradients[kV] ? keyRows * m_problem.form.vChannels : 0);
    const bool hasBiasSums = m_bindings.dbias && m_problem.biasDType != DType::F32;
    taken.bias = floats(hasBiasSums ? numElements(m_problem.biasShape) : 0);
    taken.size = parts.size();
    return taken;
  }

  bool isEmpty() const { return m_problem.layouts.k.tokens == 0 || m_problem.layouts.q.tokens == 0; }
  /// Sums over several heads of a group, or over several parts of the queries.
  bool hasSums() const { return m_problem.form.headsPerGroup() > 1 || m_tiles.rows < m_problem.layouts.q.tokens; }
  std::int64_t bytes(std::int64_t elements) const { return elements * sizeBytes(m_problem.dtype); }
  const float* lseAt(Pointers pointers) const { return reinterpret_cast<const float*>(m_bindings.lse.at(pointers)); }

  void sumDeltas(const Parts& parts, Pointers pointers) const {
    const TokenLayout& y = m_problem.layouts.y;
    const TokenLayout& dy = m_problem.gradients.y;
    launchAttentionDeltas({.element = elementOf(m_problem.dtype),
                           .y = m_bindings.y.at(pointers),
                           .dy = m_bindings.dy.at(pointers),
                           .deltas = parts.deltas,
                           .entries = y.batch,
                           .tokens = y.tokens,
                           .heads = y.heads,
                           .channels = y.channels,
                           .batchStride = y.batchStride,
                           .tokenStride = y.tokenStride,
                           .headStride = y.headStride,
                           .gradBatchStride = dy.batchStride,
                           .gradTokenStride = dy.tokenStride,
                           .gradHeadStride = dy.headStride},
                          m_device.stream);
  }

  void runPass(const ScoreRules& rules, const AttentionPass& pass, const Parts& parts, Pointers pointers,
               std::byte* workspace) {
    const AttentionLayouts& layouts = m_problem.layouts;
    const auto ofQueries = [&](const auto& tensor, const TokenLayout& layout) {
      return tensor.at(pointers) + bytes(queryOffset(m_problem, layout, pass));
    };
    const auto ofKeys = [&](const auto& tensor, const TokenLayout& layout) {
      return tensor.at(pointers) + bytes(keyOffset(m_problem, layout, pass));
    };
    const auto multiply = [&](const GemmProblem& problem, const GemmPointers& memory) {
      m_products.multiply(problem, memory, workspace + parts.size, m_device.stream);
    };
    multiply(m_gemms.scores(pass.rows), {.a = ofQueries(m_bindings.inputs[kQ], layouts.q),
                                         .b = ofKeys(m_bindings.inputs[kK], layouts.k),
                                         .c = reinterpret_cast<std::byte*>(parts.products)});
    multiply(m_gemms.gradProbabilities(pass.rows), {.a = ofQueries(m_bindings.dy, m_problem.gradients.y),
                                                    .b = ofKeys(m_bindings.inputs[kV], layouts.v),
                                                    .c = reinterpret_cast<std::byte*>(parts.gradProbabilities)});
    differentiate(rules, pass, parts, pointers);
    if (m_bindings.gradients[kQ]) {
      multiply(m_gemms.gradQueries(pass.rows), {.a = parts.gradProducts,
                                                .b = ofKeys(m_bindings.inputs[kK], layouts.k),
                                                .c = ofQueries(m_bindings.gradients[kQ], m_problem.gradients.q)});
      sumSeenKeys(rules, pass, parts, pointers);
    }
    const bool isAdded = pass.headOfGroup > 0 || pass.firstRow > 0;
    const auto addTo = [&](std::size_t slot, const TokenLayout& layout, float* sums, GemmProblem problem,
                           const std::byte* scores, const std::byte* right) {
      if (!m_bindings.gradients[slot]) return;
      std::byte* const c = sums ? reinterpret_cast<std::byte*>(sums) : ofKeys(m_bindings.gradients[slot], layout);
      multiply(problem, {.a = scores, .b = right, .addend = isAdded ? c : nullptr, .c = c});
      if (sums && isLast(pass)) storeSums(sums, layout, pass, m_bindings.gradients[slot].at(pointers));
    };
    addTo(kK, m_problem.gradients.k, parts.keys, m_gemms.gradKeys(pass.rows, hasSums(), isAdded), parts.gradProducts,
          ofQueries(m_bindings.inputs[kQ], layouts.q));
    addTo(kV, m_problem.gradients.v, parts.values, m_gemms.gradValues(pass.rows, hasSums(), isAdded),
          parts.probabilities, ofQueries(m_bindings.dy, m_problem.gradients.y));
  }

  /// Gradients of queries that are not finite.
  void sumSeenKeys(const ScoreRules& rules, const AttentionPass& pass, const Parts& parts, Pointers pointers) const {
    MaskedProduct product = maskedProduct(m_problem, rules, pass, m_problem.layouts.k, m_problem.gradients.q);
    product.scores = parts.gradProducts;
    product.right = m_bindings.inputs[kK].at(pointers);
    product.result = m_bindings.gradients[kQ].at(pointers);
    launchMaskedProduct(product, m_device.stream);
  }

  /// Is it the last of the passes with the same keys?
  bool isLast(const AttentionPass& pass) const {
    return pass.headOfGroup + 1 == m_problem.form.headsPerGroup() &&
           pass.firstRow + pass.rows == m_problem.layouts.q.tokens;
  }

  void differentiate(const ScoreRules& rules, const AttentionPass& pass, const Parts& parts, Pointers pointers) const {
    float* const ownBias = reinterpret_cast<float*>(m_bindings.dbias.at(pointers));
    launchAttentionGradient({.rules = rules,
                             .pass = pass,
                             .element = elementOf(m_problem.dtype),
                             .products = parts.products,
                             .gradProbabilities = parts.gradProbabilities,
                             .lse = lseAt(pointers),
                             .deltas = parts.deltas,
                             .probabilities = parts.probabilities,
                             .gradProducts = parts.gradProducts,
                             .gradBias = parts.bias ? parts.bias : ownBias},
                            m_device.stream);
  }

  void storeSums(const float* sums, const TokenLayout& layout, const AttentionPass& pass, std::byte* gradient) const {
    HeadRows rows = allHeadRows(m_problem, layout, gradient);
    rows.from = sums;
    rows.firstUnit = pass.firstUnit;
    rows.units = pass.units;
    rows.groups = m_problem.form.groups;
    launchHeadRows(rows, m_device.stream);
  }

  /// As rows of keys, without strides.
  HeadRows biasRows() const {
    const std::int64_t keys = m_problem.layouts.k.tokens;
    const std::int64_t elements = numElements(m_problem.biasShape);
    return {.element = elementOf(m_problem.biasDType),
            .tokens = keys == 0 ? 0 : elements / keys,
            .channels = keys,
            .tokenStride = keys};
  }

  void clearBias(const Parts& parts, Pointers pointers) const {
    HeadRows rows = biasRows();
    rows.to = m_bindings.dbias.at(pointers);
    if (parts.bias) rows.to = parts.bias;
    rows.element = device::Element::F32;
    launchHeadRows(rows, m_device.stream);
  }

  void storeBias(const Parts& parts, Pointers pointers) const {
    HeadRows rows = biasRows();
    rows.from = parts.bias;
    rows.to = m_bindings.dbias.at(pointers);
    launchHeadRows(rows, m_device.stream);
  }

  /// There are no pairs.
  void clearGradients(Pointers pointers) const {
    const AttentionLayouts& gradients = m_problem.gradients;
    const TokenLayout* const layouts[] = {&gradients.q, &gradients.k, &gradients.v};
    for (std::size_t slot = 0; slot < 3; ++slot) {
      if (!m_bindings.gradients[slot]) continue;
      launchHeadRows(allHeadRows(m_problem, *layouts[slot], m_bindings.gradients[slot].at(pointers)), m_device.stream);
    }
  }

  AttentionProblem m_problem;
  BackwardBindings m_bindings;
  std::string m_why;
  const DeviceContext& m_device;
  AttentionTiles m_tiles;
  AttentionGemms m_gemms;
  PreparedProducts m_products;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeAttentionBackward(const CompileRequest& request, const AttentionProblem& problem,
                                                      std::string why) {
  BackwardBindings bindings(request, problem);
  const AttentionPlaces& places = problem.places;
  for (const OperandKey& key :
       {places.heads[kQ].input, places.heads[kK].input, places.heads[kV].input,
        OperandKey{places.attention, OperandKind::Output, 0}, OperandKey{places.attention, OperandKind::GradOutput, 0},
        OperandKey{places.attention, OperandKind::Residual, AttentionForm::kLse}})
    if (const Result<Binding> operand = requireOperand(request, key); !operand) return operand.error();
  auto kernel = std::make_unique<AttentionBackward>(problem, std::move(bindings), std::move(why), request.device);
  if (Result<void> prepared = kernel->prepare(); !prepared) return prepared.error();
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuseline::cuda
