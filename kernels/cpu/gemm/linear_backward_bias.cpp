// Kernel "linear_backward_bias": backward of a linear layer and its bias. db = the column sums of dy, dx = dy W and
// dW = dy^T x.
//
// A panel of rows of dy is summed while it is loaded into the cache, and multiplied from there. The library's own bias
// gradient is no alternative: its inner product computes it in a separate pass after the GEMM (oneDNN 2.6.3).
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_engine.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

namespace {
namespace linear_backward_bias_parts {

constexpr int kLinear = 0;
constexpr int kBias = 1;
constexpr OperandKey kGradOutput{.member = kBias, .kind = OperandKind::GradOutput, .slot = 0};
constexpr OperandKey kGradBias{.member = kBias, .kind = OperandKind::GradParameter, .slot = 0};
constexpr OperandKey kGradInput{.member = kLinear, .kind = OperandKind::GradInput, .slot = 0};
/// As high as those of PanelGemm, for the same reasons.
constexpr std::int64_t kPanelRows = 2048;

/// Column sums of a matrix that comes in panels of rows. Everything is float32 until the end.
class PanelSums {
 public:
  PanelSums(const TensorSpec& matrix, int threads)
      : m_cols(matrix.cols()), m_panel(program(), m_cols, threads, [&](const OperandKey& key) {
          return key == kGradOutput ? StripOperand{matrix.dtype, 0} : StripOperand{DType::F32, 1};
        }) {}

  std::size_t workspaceBytes(std::int64_t maxRows) const { return 2 * vectorBytes() + m_panel.workspaceBytes(maxRows); }

  void clear(std::byte* workspace) const { std::fill_n(total(workspace), m_cols, 0.0F); }

  void add(const std::byte* panel, std::int64_t rows, std::byte* workspace) const {
    std::byte* const sums = workspace + vectorBytes();
    std::byte* const slots[] = {const_cast<std::byte*>(panel), sums};
    m_panel.run(slots, rows, sums + vectorBytes());
    const auto* const more = reinterpret_cast<const float*>(sums);
    std::transform(more, more + m_cols, total(workspace), total(workspace), std::plus<>());
  }

  void store(const Binding& to, Pointers operands, std::byte* workspace) const {
    encodeFunction(to.spec.dtype)(to.at(operands), workspace, nullptr, static_cast<std::size_t>(m_cols));
  }

 private:
  static ElementwiseProgram program() {
    return {.code = {{.opcode = Opcode::Load, .place = {.operand = kGradOutput}}},
            .columnSums = {{.value = 0, .place = {.operand = kGradBias, .access = Access::Row}}}};
  }
  static float* total(std::byte* workspace) { return reinterpret_cast<float*>(workspace); }
  std::size_t vectorBytes() const { return workspacePart(static_cast<std::size_t>(m_cols) * sizeof(float)); }

  std::int64_t m_cols;
  StripEngine m_panel;
};

class LinearBackwardBias final : public Kernel {
 public:
  LinearBackwardBias(std::optional<Gemm> inputGrad, WeightGrad weightGrad, PanelSums sums, Binding gradOutput,
                     Binding weight, Binding gradInput, Binding gradBias)
      : m_inputGrad(std::move(inputGrad)),
        m_weightGrad(std::move(weightGrad)),
        m_sums(std::move(sums)),
        m_gradOutput(std::move(gradOutput)),
        m_weight(std::move(weight)),
        m_gradInput(std::move(gradInput)),
        m_gradBias(std::move(gradBias)) {}

  std::size_t workspaceBytes() const override {
    const std::size_t products =
        std::max(m_inputGrad ? m_inputGrad->workspaceBytes() : 0, m_weightGrad.workspaceBytes());
    return sumsBytes() + products;
  }

  void run(Pointers operands, std::byte* workspace) override {
    std::byte* const products = workspace + sumsBytes();
    if (m_inputGrad) m_inputGrad->prepareB(m_weight.at(operands), products);
    m_sums.clear(workspace);
    const std::int64_t rows = m_gradOutput.spec.rows();
    for (std::int64_t row = 0; row < rows; row += kPanelRows)
      runPanel(operands, row, std::min(kPanelRows, rows - row), workspace);
    m_sums.store(m_gradBias, operands, workspace);
    m_weightGrad.run(operands, products);
  }

 private:
  std::size_t sumsBytes() const {
    return workspacePart(m_sums.workspaceBytes(std::min(kPanelRows, m_gradOutput.spec.rows())));
  }

  void runPanel(Pointers operands, std::int64_t first, std::int64_t rows, std::byte* workspace) {
    const std::byte* const panel = rowOf(m_gradOutput, operands, first);
    m_sums.add(panel, rows, workspace);
    if (m_inputGrad)
      m_inputGrad->multiplyRows(panel, rowOf(m_gradInput, operands, first), rows, workspace + sumsBytes());
  }

  static std::byte* rowOf(const Binding& matrix, Pointers operands, std::int64_t row) {
    const std::int64_t stride = matrix.rowStride > 0 ? matrix.rowStride : matrix.spec.cols();
    return matrix.at(operands) + row * stride * sizeBytes(matrix.spec.dtype);
  }

  std::optional<Gemm> m_inputGrad;
  WeightGrad m_weightGrad;
  PanelSums m_sums;
  Binding m_gradOutput, m_weight, m_gradInput, m_gradBias;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Binding> gradOutput = requireOperand(request, kGradOutput);
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> gradBias = requireOperand(request, kGradBias);
  if (!gradBias) return gradBias.error();
  Result<WeightGrad> weightGrad = WeightGrad::make(request, {.linear = kLinear, .gradOutput = kBias});
  if (!weightGrad) return weightGrad.error();
  const Binding gradInput = findOperand(request, kGradInput);
  const Binding weight = findOperand(request, {kLinear, OperandKind::Parameter, 0});
  std::optional<Gemm> inputGrad;
  if (gradInput) {
    const LinearSize size = linearSize(request.member(kLinear), gradInput.spec);
    GemmProblem problem = inputGradProblem(request, size, gradOutput->spec.dtype, weight.spec.dtype, gradInput);
    problem.maxPanelRows = kPanelRows;
    inputGrad.emplace(problem);
  }
  return std::unique_ptr<Kernel>(std::make_unique<LinearBackwardBias>(
      std::move(inputGrad), std::move(*weightGrad), PanelSums(gradOutput->spec, request.settings.threads), *gradOutput,
      weight, gradInput, *gradBias));
}

}  // namespace linear_backward_bias_parts
}  // namespace

KernelDef linear_backward_bias();

KernelDef linear_backward_bias() {
  using namespace linear_backward_bias_parts;
  return {
      .name = "linear_backward_bias",
      .phases = {Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
