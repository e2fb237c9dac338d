// Sample calls of any op, derived from its declaration: a new op is picked up by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {

/// The basic ops of the catalog that take an x of any shape.
std::vector<const FusibleOperation*> basicOperations();
/// The basic ops whose x has heads or widths of its own.
std::vector<const FusibleOperation*> structuredOperations();
/// Both.
std::vector<const FusibleOperation*> allBasicOperations();

/// For tests that have it as their parameter.
inline std::string operationName(const ::testing::TestParamInfo<const FusibleOperation*>& instance) {
  return instance.param->name;
}

/// One way to call an op.
struct OpSample {
  std::string label;           // "RMSNorm of [5, 7], eps 0.3"
  OperationPointer operation;  // for these attributes
  Attributes attributes;
  std::vector<TensorSpec> inputs;
};

/// Calls on empty, single, odd and larger tensors; on each with the default attributes, and with every attribute varied
/// separately. All inputs are f32, except for counts. Structured ops have those of structured_samples.h.
std::vector<OpSample> samplesOf(const FusibleOperation& operation);

/// Attributes that fit an input of this shape: defaults, and for the others a value by their meaning.
Attributes fittingAttributes(const FusibleOperation& operation, const Shape& shape);

/// The data of one call.
struct OpData {
  OperationSpecs specs;
  std::vector<ReferenceTensor> inputs;
  std::vector<ReferenceTensor> parameters;
  std::vector<ReferenceTensor> gradOutputs;
};

/// Random values between 0.25 and 2 in magnitude, far from the kinks of square roots, quotients and rectifiers, and
/// from the limits among the attributes, where clamps have kinks. Counts are drawn as their op defines. Throws when the
/// op's infer refuses the sample.
OpData dataOf(const OpSample& sample);

}  // namespace fuseline::testing
