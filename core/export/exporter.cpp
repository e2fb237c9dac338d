// All exporters, in the order in which they are listed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/exporter.h"

#include "core/export/chrome_trace.h"
#include "core/export/csv_table.h"
#include "core/export/drawing/svg_exporter.h"
#include "core/export/folded_stacks.h"
#include "core/export/html_report.h"
#include "core/export/inspect/dlfw_inspect.h"
#include "core/export/markdown_table.h"

#include <algorithm>
#include <array>

namespace fuseline {

namespace {

Result<std::string> pageBeside(const RunRecord& record, std::span<const NamedRun> bases, const LayOutGraph& layOut) {
  return htmlReportBeside(record, bases, layOut);
}

Result<std::string> drawingOfRun(const RunRecord& record, std::span<const NamedRun>, const LayOutGraph& layOut) {
  return svgDrawingOfRun(record, layOut);
}

Result<std::string> drawingWithoutLayout(const RunRecord& record) { return svgDrawingOfRun(record, {}); }

}  // namespace

Result<std::string> Exporter::writeWith(const RunRecord& record, std::span<const NamedRun> bases,
                                        const LayOutGraph& layOut) const {
  return writeBeside ? writeBeside(record, bases, layOut) : write(record);
}

std::span<const Exporter> exporters() {
  static const std::array all = {
      Exporter{.name = "trace",
               .title = "Chrome trace",
               .ending = ".json",
               .summary = "When each pass, step and kernel ran, for ui.perfetto.dev and chrome://tracing",
               .write = chromeTrace},
      Exporter{.name = "folded",
               .title = "Folded stacks",
               .ending = ".folded",
               .summary = "Where the time goes, from plans down to kernels, for flamegraph.pl, inferno and speedscope",
               .write = foldedStacks},
      Exporter{.name = "csv",
               .title = "CSV table",
               .ending = ".csv",
               .summary = "Time of each step, one line each, in nanoseconds",
               .write = csvTable},
      Exporter{.name = "markdown",
               .title = "Markdown table",
               .ending = ".md",
               .summary = "Both plans in one table, for pull requests",
               .write = markdownTable},
      Exporter{.name = "html",
               .title = "HTML report",
               .ending = ".html",
               .summary = "Web page with plans, steps and reasons; Fuseline can also open it as a run",
               .write = htmlReport,
               .writeBeside = pageBeside},
      Exporter{.name = "svg",
               .title = "Shaded drawing",
               .ending = ".svg",
               .summary = "The graph, with ops shaded by time; Fuseline can open the picture as a pipeline",
               .write = drawingWithoutLayout,
               .writeBeside = drawingOfRun},
      Exporter{.name = "dlfw-inspect",
               .title = "nvidia-dlfw-inspect configuration",
               .ending = ".yaml",
               .summary = "Configuration of TransformerEngine's debug tool for the layers with the largest error",
               .write = dlfwInspectOfRun},
  };
  return all;
}

const Exporter* findExporter(std::string_view name) {
  const auto all = exporters();
  const auto found = std::ranges::find(all, name, &Exporter::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace fuseline
