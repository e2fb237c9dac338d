// Takes the section as it is: no edit is applied, so that a block that is wrong is shown, too.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/block_section.h"

#include "core/edit/edit_applier.h"

#include <utility>

namespace fuseline {

PipelineDocument blockSection(const PipelineDocument& document, DocumentBlock block) {
  return EditApplier::section(document, std::move(block));
}

}  // namespace fuseline
