// Multi-head latent attention: queries and keys from projections of low rank, with a rotated part that all heads share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_form.h"
#include "core/export/model/section_text.h"

#include <string>

namespace fuseline {

/// Adds its ops and the output projection, and returns the result. x: the normalized hidden states.
/// Precondition: form.latent.
std::string addLatentAttention(const ModelForm& form, const LayerKind& kind, SectionText& text, const std::string& x);

/// The symbols of its sizes.
void addLatentSymbols(const LatentForm& latent, Json& symbols);

/// Names of DeepSeek's files.
void addLatentWeights(ModelForm& form);

}  // namespace fuseline
