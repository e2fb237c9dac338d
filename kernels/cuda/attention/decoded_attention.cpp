// Dequantizes into the workspace, in front of the kernel that reads it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/decoded_attention.h"

#include "kernels/cuda/quantize/coded_copy.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

bool isQuantized(const CompileRequest& request, const StepOperand& operand) {
  return operand.access == OperandAccess::Read && request.plan.spec(operand).quantized.has_value();
}

std::size_t decodedBytes(const TensorSpec& spec) {
  return workspacePart(static_cast<std::size_t>(spec.numElements() * sizeBytes(spec.dtype)));
}

class DecodedAttention final : public Kernel {
 public:
  DecodedAttention(std::unique_ptr<Kernel> inner, std::vector<Binding> codes, std::string why, Stream stream)
      : m_inner(std::move(inner)), m_codes(std::move(codes)), m_why(std::move(why)), m_stream(stream) {}

  std::size_t workspaceBytes() const override {
    std::size_t bytes = m_inner->workspaceBytes();
    for (const Binding& operand : m_codes) bytes += decodedBytes(operand.spec);
    return bytes;
  }

  std::vector<std::string> ways() const override {
    std::vector<std::string> ways = m_inner->ways();
    ways.insert(ways.begin(), fmt::format("quantized values are dequantized first, and attention computes in {}: {}",
                                          dtypeName(m_codes.front().spec.dtype), m_why));
    return ways;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    std::vector<std::byte*> decoded(pointers.begin(), pointers.end());
    for (const Binding& operand : m_codes) {
      launchDecode(operand.spec, operand.at(pointers), workspace, m_stream);
      decoded[static_cast<std::size_t>(operand.index)] = workspace;
      workspace += decodedBytes(operand.spec);
    }
    m_inner->run(decoded, workspace);
  }

 private:
  std::unique_ptr<Kernel> m_inner;
  std::vector<Binding> m_codes;
  std::string m_why;
  Stream m_stream;
};

}  // namespace

bool readsQuantized(const CompileRequest& request) {
  return std::ranges::any_of(request.step.operands,
                             [&](const StepOperand& operand) { return isQuantized(request, operand); });
}

Result<std::unique_ptr<Kernel>> makeDecodedAttention(
    const CompileRequest& request, const std::string& why,
    const std::function<Result<std::unique_ptr<Kernel>>(const CompileRequest&)>& make) {
  std::vector<Binding> codes;
  std::vector<Binding> decoded;
  for (std::size_t index = 0; index < request.step.operands.size(); ++index) {
    const StepOperand& operand = request.step.operands[index];
    if (!isQuantized(request, operand)) continue;
    const TensorSpec& spec = request.plan.spec(operand);
    codes.push_back({.index = static_cast<int>(index), .spec = spec});
    decoded.push_back({.index = static_cast<int>(index), .spec = {spec.dtype, spec.shape}});
  }
  CompileRequest inner = request;
  inner.decoded = decoded;
  Result<std::unique_ptr<Kernel>> kernel = make(inner);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<DecodedAttention>(std::move(*kernel), std::move(codes), why, request.device.stream));
}

}  // namespace fuseline::cuda
