// Passes of a graph as SVG: laid out by a library, drawn here, so that the same graph has the same text everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/drawn_pass.h"
#include "core/export/drawing/graph_layout.h"
#include "core/export/html.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Content of a drawing's <style>, and of that of a page with drawings: the colors of the dark theme. The colors of the
/// light theme are attributes, which every program reads.
std::string drawingStyle();

enum class SvgUse { File, InPage };

/// Legend of the shaded boxes, above them.
struct HeatLegend {
  std::string caption;
  std::string most;  // at the hot end: "1.14 ms (42 %)"
};

struct SvgOptions {
  SvgUse use = SvgUse::File;
  std::string title;
  std::optional<HeatLegend> legend = std::nullopt;
};

/// The passes side by side: forward flows down, backward up. Ops have the class "op" and the id of opAnchor(). Texts
/// stay texts. Errors: too many ops, and those of layOut, which is not empty.
Result<Html> svgOf(const std::vector<DrawnPass>& passes, const LayOutGraph& layOut, const SvgOptions& options = {});

/// "op-f3": the id of a box within its page.
std::string opAnchor(Phase phase, NodeId node);

}  // namespace fuseline
