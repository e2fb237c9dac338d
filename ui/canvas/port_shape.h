// The shape of a port by the dtype of its tensor, so that color is not the only thing that tells dtypes apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <QPainterPath>

#include <optional>

namespace fuseline::ui {

/// A circle for bf16 and where the dtype is not known, a square for f32, a diamond for f16, a triangle for the others.
QPainterPath portShape(std::optional<DType> dtype, QPointF centre, double radius);

}  // namespace fuseline::ui
