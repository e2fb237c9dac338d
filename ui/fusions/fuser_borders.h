// Where a pipeline falls into several fusers, as TransformerEngine groups it: at the borders of nested Sequentials.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <QString>

#include <string>
#include <vector>

namespace fuseline::ui {

/// Between two ops of the document of which one reads the other. Fusers are counted from 1, in the order in which they
/// run.
struct FuserBorder {
  std::string from;
  std::string to;
  int fuserBefore = 0;
  int fuserBehind = 0;
  QString tip;
};

/// None where one fuser has all ops. Borders inside an instance of a block are not the canvas' to show.
std::vector<FuserBorder> fuserBorders(const Graph& graph);

}  // namespace fuseline::ui
