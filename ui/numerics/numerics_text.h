// Words for what number formats do to values, the same for measured and for recorded figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"

#include <QString>

#include <set>
#include <string>
#include <string_view>

namespace fuseline::ui {

/// "fused ↔ unfused: pass, at most 0.12 of the tolerance (act:y)"; empty where nothing was compared.
QString verdictSentence(const QString& what, const NumericsVerdict& verdict);
/// One line of both verdicts: "against float32: pass, ... · fused ↔ unfused: pass, ...".
QString summaryOf(const NumericsReport& report);
/// "0.031", "0.031 … 0.25": of all blocks.
QString scaleText(const QuantizationLosses& losses);
/// "12 %"; "0" for none.
QString lossShareText(double share);
/// "31.2 dB"; "exact" where nothing was lost.
QString noiseText(const QuantizationLosses& losses);
/// The pass that a tensor is of, by its name: "grad.fc1.weight" and "fc1.grad_output@rowwise" are of backward.
std::set<std::string> passesOf(std::string_view tensor);

}  // namespace fuseline::ui
