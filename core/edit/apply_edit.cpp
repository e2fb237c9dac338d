// A document of a newer format is left alone.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"

#include "core/edit/edit_applier.h"

namespace fuseline {

Result<Edit> applyEdit(PipelineDocument& document, const Edit& edit) {
  if (document.isReadOnly())
    return Error{
        "This pipeline has a newer major version of the format, so it is read-only. Use a newer Fuseline to edit it."};
  return EditApplier(document).apply(edit);
}

}  // namespace fuseline
