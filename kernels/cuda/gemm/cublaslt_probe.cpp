// Every epilogue is probed in the pass that uses it, because the storage order of the factors depends on the pass.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_probe.h"

#include "core/tensor/scaling.h"
#include "kernels/cuda/gemm/cublaslt_product.h"

#include <array>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// A multiple required by every scaling and every bit mask.
constexpr std::int64_t kExtent = 4096;

enum class Pass { Forward, InputGradient, WeightGradient };

/// The matrix that an epilogue writes or reads in addition to D.
enum class Aux { None, Mask, Values };

struct Epilogue {
  const char* name;
  cublasLtEpilogue_t value;
  Pass pass = Pass::Forward;
  bool hasBias = false;  // or its gradient
  Aux aux = Aux::None;
};

constexpr std::array kEpilogues = {
    Epilogue{"DEFAULT", CUBLASLT_EPILOGUE_DEFAULT},
    Epilogue{"BIAS", CUBLASLT_EPILOGUE_BIAS, Pass::Forward, true},
    Epilogue{"RELU", CUBLASLT_EPILOGUE_RELU},
    Epilogue{"RELU_BIAS", CUBLASLT_EPILOGUE_RELU_BIAS, Pass::Forward, true},
    Epilogue{"RELU_AUX", CUBLASLT_EPILOGUE_RELU_AUX, Pass::Forward, false, Aux::Mask},
    Epilogue{"RELU_AUX_BIAS", CUBLASLT_EPILOGUE_RELU_AUX_BIAS, Pass::Forward, true, Aux::Mask},
    Epilogue{"GELU", CUBLASLT_EPILOGUE_GELU},
    Epilogue{"GELU_BIAS", CUBLASLT_EPILOGUE_GELU_BIAS, Pass::Forward, true},
    Epilogue{"GELU_AUX", CUBLASLT_EPILOGUE_GELU_AUX, Pass::Forward, false, Aux::Values},
    Epilogue{"GELU_AUX_BIAS", CUBLASLT_EPILOGUE_GELU_AUX_BIAS, Pass::Forward, true, Aux::Values},
    Epilogue{"DRELU", CUBLASLT_EPILOGUE_DRELU, Pass::InputGradient, false, Aux::Mask},
    Epilogue{"DRELU_BGRAD", CUBLASLT_EPILOGUE_DRELU_BGRAD, Pass::InputGradient, true, Aux::Mask},
    Epilogue{"DGELU", CUBLASLT_EPILOGUE_DGELU, Pass::InputGradient, false, Aux::Values},
    Epilogue{"DGELU_BGRAD", CUBLASLT_EPILOGUE_DGELU_BGRAD, Pass::InputGradient, true, Aux::Values},
    Epilogue{"BGRADA", CUBLASLT_EPILOGUE_BGRADA, Pass::WeightGradient, true},
    Epilogue{"BGRADB", CUBLASLT_EPILOGUE_BGRADB, Pass::WeightGradient, true}};

struct Formats {
  std::string factors;
  std::string result;
  GemmProblem problem;
  bool hasRowScales = false;    // of quantized factors: a scale for each row that is not contracted
  bool hasCodedResult = false;  // in the format of the factors, with D_SCALE and AMAX_D
};

Formats plain(DType dtype) {
  const std::string name(dtypeName(dtype));
  return {.factors = name, .result = name, .problem = {.factorType = dtype, .cType = dtype}};
}

Formats coded(const FactorCodes& a, const FactorCodes& b, DType result) {
  const auto text = [](const FactorCodes& codes) {
    return fmt::format("{} {}", formatName(codes.format), traitsOf(codes.scaling).name);
  };
  return {.factors = a == b ? text(a) : text(a) + " x " + text(b),
          .result = std::string(dtypeName(result)),
          .problem = {.aCodes = a, .bCodes = b, .cType = result}};
}

Formats withRowScales(Formats formats) {
  formats.factors = "e4m3 per_row";
  formats.hasRowScales = true;
  return formats;
}

Formats withCodedResult(Formats formats) {
  formats.result = "e4m3";
  formats.hasCodedResult = true;
  return formats;
}

std::vector<Formats> allFormats() {
  const FactorCodes e4m3{};
  const FactorCodes e5m2{.format = ElementFormat::E5M2};
  const FactorCodes rows{.scaling = Scaling::Block1x128};
  const FactorCodes blocks{.scaling = Scaling::Block128x128};
  const FactorCodes mx{.scaling = Scaling::Mx1x32};
  const FactorCodes nv{.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16};
  return {plain(DType::BF16),
          plain(DType::F16),
          plain(DType::F32),
          coded(e4m3, e4m3, DType::BF16),
          coded(e4m3, e4m3, DType::F16),
          coded(e4m3, e4m3, DType::F32),
          withCodedResult(coded(e4m3, e4m3, DType::BF16)),
          coded(e5m2, e4m3, DType::BF16),
          withRowScales(coded(e4m3, e4m3, DType::BF16)),
          coded(rows, blocks, DType::BF16),
          coded(rows, blocks, DType::F16),
          coded(rows, blocks, DType::F32),
          coded(blocks, rows, DType::BF16),
          coded(rows, rows, DType::BF16),
          coded(mx, mx, DType::BF16),
          coded(nv, nv, DType::BF16)};
}

/// Passes with quantized factors all use the one order that Hopper supports: the transposes are made by quantization.
GemmProblem problemOf(const Formats& formats, Pass pass) {
  GemmProblem problem = formats.problem;
  problem.m = problem.n = problem.k = kExtent;
  if (problem.aCodes || pass == Pass::Forward) problem.b = Storage2d::Transposed;
  if (!problem.aCodes && pass == Pass::WeightGradient) problem.a = Storage2d::Transposed;
  return problem;
}

/// With quantized factors a vector has 16 bits.
cudaDataType_t biasTypeOf(const CublasLtTerms& terms) {
  return terms.aScaleMode && terms.cType == CUDA_R_32F ? CUDA_R_16BF : terms.cType;
}

CublasLtTerms termsOf(const Formats& formats, const Epilogue& epilogue) {
  CublasLtTerms terms = termsOf(problemOf(formats, epilogue.pass));
  terms.epilogue = epilogue.value;
  if (epilogue.hasBias) terms.biasType = biasTypeOf(terms);
  terms.hasAux = epilogue.aux != Aux::None;
  if (epilogue.aux == Aux::Values && !formats.hasCodedResult) terms.auxType = terms.cType;  // quantized: its own
  if (formats.hasRowScales) terms.aScaleMode = terms.bScaleMode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  if (formats.hasCodedResult) terms.dType = terms.aType;
  terms.hasResultScale = formats.hasCodedResult;
  return terms;
}

/// A description that the library refuses is an answer, too.
Verdict ask(const CublasLtSession& session, const Formats& formats, const Epilogue& epilogue) {
  const auto product = describeProduct(session, formats.problem, termsOf(formats, epilogue));
  return product ? (*product)->isOffered() : Verdict::no(product.error().message);
}

}  // namespace

std::vector<ProductSupport> probeProducts(const CublasLtSession& session) {
  std::vector<ProductSupport> answers;
  for (const Formats& formats : allFormats())
    for (const Epilogue& epilogue : kEpilogues)
      answers.push_back({.factors = formats.factors,
                         .result = formats.result,
                         .epilogue = epilogue.name,
                         .isSupported = ask(session, formats, epilogue)});
  return answers;
}

}  // namespace fuseline::cuda
