// Kept as a child object of the pipeline, made with its first change.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/last_edits.h"

#include <utility>

namespace fuseline::ui {

const LastEdits::Edits& LastEdits::of(const OpenPipeline& pipeline) {
  static const Edits kUnknown;
  const auto* last = pipeline.findChild<LastEdits*>(QString(), Qt::FindDirectChildrenOnly);
  return last ? last->m_edits : kUnknown;
}

void LastEdits::set(OpenPipeline& pipeline, Edits edits) {
  auto* last = pipeline.findChild<LastEdits*>(QString(), Qt::FindDirectChildrenOnly);
  if (!last) last = new LastEdits(&pipeline);
  last->m_edits = std::move(edits);
}

}  // namespace fuseline::ui
