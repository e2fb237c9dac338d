// Models of images: patches in place of tokens, and a classifier.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_config.h"
#include "core/export/model/model_form.h"
#include "core/export/model/section_text.h"

#include <cstdint>
#include <string>

namespace fuseline {

/// Sets the image form and the number of tokens. Errors: a patch larger than the image.
void readImage(const ModelConfig& config, std::int64_t classTokens, ModelForm& form);
/// Classes of the config, if its architecture is a classifier, or if it names none.
void readClasses(const ModelConfig& config, ModelForm& form);

/// Adds the inputs and the ops up to the first layer, and returns the hidden states. Precondition: form.image.
std::string addPatches(const ModelForm& form, SectionText& text);
/// Adds the linear op that reads the first token, and returns the logits. x: the normalized hidden states.
/// Precondition: there are class tokens.
std::string addClassifier(SectionText& text, const std::string& x);

/// Adds the attention of a learned probe to all tokens, and an MLP, and returns one row for each image. x: the
/// normalized hidden states.
std::string addPoolingHead(const ModelForm& form, SectionText& text, const std::string& x);

/// The symbols of its sizes.
void addImageSymbols(const ImageForm& image, Json& symbols);

/// Names of the tensors from which the convolution over patches and the positions are read.
struct PatchTensors {
  std::string convolution;  // without .weight and .bias
  std::string positions;
  Shape positionShape;  // of that tensor
};
void addPatchWeights(const ModelConfig& config, const PatchTensors& tensors, ModelForm& form);

}  // namespace fuseline
