// Conditions that several rules share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "core/quant/recipe.h"

#include <cstdint>
#include <string>

namespace fuseline::rules {

/// The edit that sets an attribute of the op, at its definition.
Repair setAttribute(const Node& node, const std::string& name, Json value);

/// The role's linear does not communicate right after its GEMM ("row") or after its input gradient ("column").
Condition linearModeIsNot(std::string role, std::string mode);
/// The role's op has `in_place` on, or off.
Condition inPlaceIs(std::string role, bool expected);
/// The role's activation has `cache_quantized_input` off, if it has the attribute: otherwise backward follows from
/// quantized values.
Condition keepsItsInput(std::string role);
/// The role's linear does not round its input to the dtype of its weight first.
Condition readsItsInputAsMade(std::string role);
/// The role's activation is not GELU by the error function, which neither te.ops nor cuBLASLt has.
Condition isNotExactGelu(std::string role);
/// An attribute of the role's op has this value.
Condition attributeIs(std::string role, std::string attribute, std::int64_t value);
/// The role's weight is f16 or bf16.
Condition weightIs16Bit(std::string role);
/// The other rule does not take all of these ops. It has no repeated steps.
Condition isNotTakenBy(FusionRule other);
/// Both roles work in the same dtype.
Condition sameDType(std::string roleA, std::string roleB);
/// The scales with which the role's linear op reads this tensor follow from blocks of rows, or are known beforehand.
Condition scalesNeedOnlyRows(std::string role, TensorType type);
/// If the producer is a linear op, whose GEMM has no rows: they are known beforehand.
Condition productsKnowTheScale(std::string producer, std::string role, TensorType type);
/// The scales with which the role's linear op reads this tensor follow from the amax of the plain tensor.
Condition scalesNeedTheAmax(std::string role, TensorType type);
/// The role's op multiplies all rows by one weight.
Condition hasNoGroups(std::string role);

/// An op that computes its result row by row: elementwise, or a norm.
ChainStep rowByRow(std::string role);
/// The same, or a linear op, unless it communicates right after its GEMM in this mode: "row" or "column".
ChainStep rowByRowOrLinear(std::string role, std::string mode);
/// A linear op that reads this tensor quantized.
ChainStep quantizing(std::string role, TensorType type);
/// A linear op that reads this tensor quantized with scalings that have one amax a tensor.
ChainStep quantizingByAmax(std::string role, TensorType type);
/// An op that makes queries, keys or values: a linear op without partial sums, a Split, or a rotary embedding.
ChainStep makingHeads(std::string role);
/// An attention that reads its queries, keys and values quantized.
ChainStep quantizedAttention(std::string role);

}  // namespace fuseline::rules
