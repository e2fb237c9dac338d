// Places boxes in a column.
// SPDX-License-Identifier: Apache-2.0
#include "tests/core/export/sample_layout.h"

#include "core/document/file_format.h"

#include <algorithm>

namespace fuseline {

Result<GraphLayout> inAColumn(const LayoutProblem& problem) {
  GraphLayout layout;
  for (const DrawnSize& size : problem.boxes) {
    layout.boxes.push_back({size.width / 2, layout.size.height + size.height / 2});
    layout.size = {std::max(layout.size.width, size.width), layout.size.height + size.height};
  }
  layout.wires.resize(problem.wires.size(), {.curves = {{{}, {}, {}, {}}}});
  layout.frames.resize(problem.frames.size());
  return layout;
}

Analysis analysisOf(const std::string& name) {
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) return analyze(parseDocument(entry.text).document);
  return {};
}

}  // namespace fuseline
