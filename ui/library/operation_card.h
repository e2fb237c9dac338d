// Hover card of an op, with the text of `fuseline ops NAME`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/operation_cost.h"
#include "core/ops/operation.h"

#include <QString>

#include <optional>

namespace fuseline::ui {

/// The card in a few lines: summary, formula and cost of the op where it stands, if that is known.
QString operationTip(const FusibleOperation& operation, const QString& title, const std::optional<OperationCost>& cost);

/// Rich text. `title` stands beside the op's name. The cost is that of the op where it stands; without one, that of a
/// sample input.
QString operationCard(const FusibleOperation& operation, const QString& title,
                      const std::optional<OperationCost>& cost = std::nullopt);

}  // namespace fuseline::ui
