// y = x W^T, dx = dy W and dW = dy^T x, with W: [out, in].
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/product_cases.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// The features of an MLP: of its input, of its activation's input (a gated one halves it), and of its output.
struct Model {
  const char* name;
  std::int64_t in, up, down;
};
constexpr Model k8B{"8B", 4096, 28672, 14336};
constexpr Model k1B{"1.3B", 2048, 8192, 8192};
constexpr Model k70B{"70B", 8192, 57344, 28672};
constexpr Model k175B{"175B", 12288, 49152, 49152};
/// One of the experts of DeepSeek-V2-Lite.
constexpr Model kExpert{"expert", 2048, 2816, 1408};

/// Tokens of a prompt, of a step of generation, and of an expert's share of a batch.
constexpr std::int64_t kTokens = 2048;
constexpr std::int64_t kDecodeTokens = 16;
constexpr std::int64_t kExpertTokens = 1024;

enum class Factors { Bf16, F16, Tf32, Fp8, Fp8Block, Mxfp8, Nvfp4 };

const char* nameOf(Factors factors) {
  switch (factors) {
    case Factors::Bf16: return "bf16";
    case Factors::F16: return "f16";
    case Factors::Tf32: return "tf32";
    case Factors::Fp8: return "fp8";
    case Factors::Fp8Block: return "fp8_block";
    case Factors::Mxfp8: return "mxfp8";
    case Factors::Nvfp4: return "nvfp4";
  }
  return "";
}

DType resultOf(Factors factors) {
  if (factors == Factors::F16) return DType::F16;
  return factors == Factors::Tf32 ? DType::F32 : DType::BF16;
}

bool isCoded(Factors factors) {
  return factors == Factors::Fp8 || factors == Factors::Fp8Block || factors == Factors::Mxfp8 ||
         factors == Factors::Nvfp4;
}

/// Gradients with one scale a tensor come in the wider format.
FactorCodes codesOf(Factors factors, bool isGradient, bool isWeight) {
  if (factors == Factors::Fp8Block) return {.scaling = isWeight ? Scaling::Block128x128 : Scaling::Block1x128};
  if (factors == Factors::Mxfp8) return {.scaling = Scaling::Mx1x32};
  if (factors == Factors::Nvfp4)
    return {.format = ElementFormat::E2M1, .scaling = isWeight ? Scaling::Nv16x16 : Scaling::Nv1x16};
  return {.format = isGradient ? ElementFormat::E5M2 : ElementFormat::E4M3};
}

GemmProblem problemOf(Factors factors, std::int64_t m, std::int64_t n, std::int64_t k) {
  const DType dtype = resultOf(factors);
  return {.m = m, .n = n, .k = k, .factorType = dtype, .isTf32 = factors == Factors::Tf32, .cType = dtype};
}

/// One linear layer. Quantized factors are stored as on Hopper: contracted elements are contiguous.
struct Layer {
  Factors factors;
  std::int64_t tokens, in, out;

  GemmProblem forward() const {
    GemmProblem problem = problemOf(factors, tokens, out, in);
    problem.b = Storage2d::Transposed;
    if (isCoded(factors)) give(problem, codesOf(factors, false, false), codesOf(factors, false, true));
    problem.isFastAccumulated = factors == Factors::Fp8;
    return problem;
  }

  GemmProblem inputGradient() const {
    GemmProblem problem = problemOf(factors, tokens, in, out);
    if (isCoded(factors)) give(problem, codesOf(factors, true, false), codesOf(factors, false, true));
    return problem;
  }

  GemmProblem weightGradient() const {
    GemmProblem problem = problemOf(factors, out, in, tokens);
    if (isCoded(factors))
      give(problem, codesOf(factors, true, false), codesOf(factors, false, false));
    else
      problem.a = Storage2d::Transposed;
    return problem;
  }

 private:
  static void give(GemmProblem& problem, FactorCodes a, FactorCodes b) {
    problem.aCodes = a;
    problem.bCodes = b;
    problem.b = Storage2d::Transposed;
  }
};

void addLayer(std::vector<ProductCase>& cases, const std::string& name, const Layer& layer) {
  cases.push_back({name + " forward", layer.forward()});
  cases.push_back({name + " dgrad", layer.inputGradient()});
  cases.push_back({name + " wgrad", layer.weightGradient()});
}

std::string prefixOf(Factors factors, const Model& model, std::int64_t tokens) {
  return fmt::format("{} {} {}", nameOf(factors), model.name, tokens);
}

void addModel(std::vector<ProductCase>& cases, Factors factors, const Model& model, std::int64_t tokens) {
  const std::string prefix = prefixOf(factors, model, tokens);
  addLayer(cases, prefix + " up", {factors, tokens, model.in, model.up});
  addLayer(cases, prefix + " down", {factors, tokens, model.down, model.in});
}

/// Where nothing is trained.
void addForward(std::vector<ProductCase>& cases, Factors factors, const Model& model, std::int64_t tokens) {
  const std::string prefix = prefixOf(factors, model, tokens);
  cases.push_back({prefix + " up forward", Layer{factors, tokens, model.in, model.up}.forward()});
  cases.push_back({prefix + " down forward", Layer{factors, tokens, model.down, model.in}.forward()});
}

/// The counterpart of "up forward", whose partial sums are added in fewer bits: it shows the cost of exact sums.
void addSplitSums(std::vector<ProductCase>& cases, const Model& model, std::int64_t tokens) {
  GemmProblem problem = Layer{Factors::Fp8, tokens, model.in, model.up}.forward();
  problem.isFastAccumulated = false;
  cases.push_back({prefixOf(Factors::Fp8, model, tokens) + " up forward, split sums", std::move(problem)});
}

/// GEMMs of an MLP with biases and GELU, as ForwardLinearEpilogue and the fusions of backward request them.
void addEpilogues(std::vector<ProductCase>& cases, Factors factors, const Model& model, std::int64_t tokens) {
  const std::string prefix = prefixOf(factors, model, tokens);
  const Layer up{factors, tokens, model.in, model.up};
  const Layer down{factors, tokens, model.down, model.in};
  const auto add = [&](const char* name, GemmProblem problem) {
    cases.push_back({fmt::format("{} {}", prefix, name), std::move(problem)});
  };
  GemmProblem gelu = up.forward();
  gelu.hasBias = gelu.hasPreActivation = true;
  gelu.activation = GemmActivation::Gelu;
  add("up forward + bias + gelu", gelu);
  GemmProblem bias = down.forward();
  bias.hasBias = true;
  add("down forward + bias", bias);
  GemmProblem addend = down.forward();
  addend.hasAddend = true;
  add("down forward + addend", addend);
  GemmProblem geluGrad = down.inputGradient();
  geluGrad.hasGeluGrad = true;
  add("down dgrad + dgelu", geluGrad);
  GemmProblem biasGrad = up.weightGradient();
  biasGrad.biasGradType = biasGrad.cType;
  add("up wgrad + dbias", biasGrad);
}

}  // namespace

std::vector<ProductCase> productCases() {
  std::vector<ProductCase> cases;
  for (const Factors factors : {Factors::Bf16, Factors::Fp8})
    for (const Model& model : {k8B, k1B})
      for (const std::int64_t tokens : {2048, 8192}) addModel(cases, factors, model, tokens);
  for (const Factors factors : {Factors::Bf16, Factors::Fp8}) {
    for (const Model& model : {k70B, k175B}) addModel(cases, factors, model, kTokens);
    addModel(cases, factors, kExpert, kExpertTokens);
    addForward(cases, factors, k8B, kDecodeTokens);
    addEpilogues(cases, factors, k1B, kTokens);
  }
  for (const Model& model : {k8B, k1B}) {
    for (const Factors factors : {Factors::Fp8Block, Factors::Mxfp8, Factors::Nvfp4})
      addModel(cases, factors, model, kTokens);
    addSplitSums(cases, model, kTokens);
  }
  for (const Factors factors : {Factors::F16, Factors::Tf32}) addModel(cases, factors, k1B, kTokens);
  return cases;
}

}  // namespace fuseline::cuda
