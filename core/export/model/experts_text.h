// The ops of a layer's experts: router, permutation, grouped MLP, and the sum of each token's experts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_form.h"
#include "core/export/model/section_text.h"

#include <string>

namespace fuseline {

/// Adds them and returns their result. x: the normalized hidden states. Precondition: form.experts.
std::string addExperts(const ModelForm& form, SectionText& text, const std::string& x);

/// The symbols of their sizes.
void addExpertSymbols(const ExpertsForm& experts, Json& symbols);

}  // namespace fuseline
