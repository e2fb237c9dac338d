// The tours.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/baselines.h"
#include "ui/tours/tour.h"

#include <QCoreApplication>

#include <algorithm>

namespace fuseline::ui {

namespace {

QString text(const char* source) { return QCoreApplication::translate("Tours", source); }

// ---- What can be waited for.

bool isFused(const Session& session, std::string_view rule) {
  const FusionReport& report = session.plan().analysis()->report;
  const auto isOfRule = [&](const FusedOperation& entry) { return entry.isFused() && entry.rule->name == rule; };
  return std::ranges::any_of(report.forward, isOfRule) || std::ranges::any_of(report.backward, isOfRule);
}

auto fused(const char* rule) {
  return [rule](const Session& session) { return isFused(session, rule); };
}

auto notFused(const char* rule) {
  return [rule](const Session& session) { return session.plan().analysis()->isRunnable() && !isFused(session, rule); };
}

auto selected(const char* op) {
  return [op](const Session& session) { return session.selection().ids().contains(QString::fromLatin1(op)); };
}

bool isMeasured(const Session& session) { return session.results().lastRun() && !session.results().lastRun()->isStale; }
bool areNumericsMeasured(const Session& session) {
  return session.results().lastNumerics() && !session.results().lastNumerics()->isStale;
}
bool hasBaseline(const Session& session) { return !session.baselines().isEmpty(); }
bool isQuantized(const Session& session) {
  return session.plan().analysis()->recipe && session.plan().analysis()->recipe->name() != "None";
}

// ---- The tours, in the order of the guide's first steps.

Tour fusionTour() {
  return {.title = text("Make a fusion happen"),
          .summary = text("See what fuses in a layer, why another fusion does not apply, and fix it"),
          .pipeline = "llama-mlp",
          .steps = {
              {.text = text("Solid outlines show ops that are fused in the forward pass, dashed outlines in the "
                            "backward pass. Click <b>add</b>, the last op."),
               .isDone = selected("add")},
              {.text = text("<b>fc2</b> and <b>add</b> are fused by TransformerEngine's rule ForwardLinearBiasAdd. "
                            "Switch <b>in_place</b> off in the Inspector."),
               .pane = QStringLiteral("inspector"),
               .isDone = notFused("ForwardLinearBiasAdd")},
              {.text = text("Now one of Fuseline's own rules fuses <b>fc2</b> and <b>add</b>; TransformerEngine would "
                            "not fuse these ops. <b>Fusions</b> shows which condition of ForwardLinearBiasAdd fails. "
                            "Press <b>Fix</b> next to it to set in_place."),
               .pane = QStringLiteral("whyNot"),
               .isDone = fused("ForwardLinearBiasAdd")},
              {.text = text("The fusion is back. Ctrl+Z would undo the fix. The <b>Rules</b> pane lists all rules in "
                            "the order in which they are tried, and where each one applies."),
               .pane = QStringLiteral("rules")},
          }};
}

Tour worthTour() {
  return {.title = text("See what a fusion is worth"),
          .summary = text("Measure both plans, pin a baseline, and measure without one fusion"),
          .pipeline = "llama-mlp",
          .steps = {
              {.text = text("Press <b>Ctrl+Enter</b>. The pipeline runs unfused and fused, interleaved, until the "
                            "speed-up is precise enough, for at most 12 s. <b>Esc</b> stops it."),
               .isDone = isMeasured},
              {.text = text("<b>Timings</b> shows each fused op above the basic ops that it replaces. A tilde marks a "
                            "difference that is not significant, parentheses mark a step that is the same in both "
                            "plans. Press <b>Ctrl+B</b> to keep this run as a baseline."),
               .pane = QStringLiteral("timings"),
               .isDone = hasBaseline},
              {.text = text("Click the label <b>backward · BackwardAddRMSNorm</b>, or this fusion in the plan, and "
                            "press <b>T</b> to switch this fusion off at this place only."),
               .pane = QStringLiteral("plan"),
               .isDone = notFused("BackwardAddRMSNorm")},
              {.text = text("The times are still those of the previous plan, and are marked as such. Press "
                            "<b>Ctrl+Enter</b> again."),
               .isDone = isMeasured},
              {.text = text(
                   "Times are shown next to the baseline's, with the difference if it is significant. <b>Timeline</b> "
                   "shows when each step ran, <b>Roofline</b> compares it with the device's peaks."),
               .pane = QStringLiteral("timings")},
          }};
}

Tour precisionTour() {
  return {
      .title = text("FP8 against bf16"),
      .summary = text("Choose a recipe, and see the plan and the quantization error of each tensor"),
      .pipeline = "llama-mlp",
      .steps = {
          {.text = text("Choose a recipe in the toolbar, such as <b>Float8CurrentScaling</b>."), .isDone = isQuantized},
          {.text = text("Labels on the wires show quantized formats; outlines show the ops that now write quantized "
                        "values directly. Press <b>Ctrl+Shift+Enter</b> to measure the error."),
           .isDone = areNumericsMeasured},
          {.text = text("<b>Numerics</b> shows the error of each result against float32, and the quantization error. "
                        "Click a quantized tensor to see its histogram and the range of the format, and to preview "
                        "another recipe. On a CPU formats are emulated: values are rounded as the format requires, but "
                        "times are not those of a GPU."),
           .pane = QStringLiteral("numerics")},
      }};
}

Tour exportTour() {
  return {.title = text("Take it into training code"),
          .summary = text("Export a TransformerEngine module, and check that TransformerEngine fuses it the same way"),
          .pipeline = "gpt-mlp",
          .steps = {
              {.text = text("Press <b>Ctrl+E</b> to see the pipeline as a module of TransformerEngine's <b>te.ops</b>, "
                            "with its residual connection (an extra output and an extra input) and recipe. Notes list "
                            "differences. Save it as <i>mlp.py</i>, or close the window.")},
              {.text = text(
                   "On a machine with TransformerEngine, <b>python3 mlp.py --plan</b> compares TransformerEngine's "
                   "fusions with Fuseline's plan, and <b>--check</b> compares its tensors with those of <i>fuseline "
                   "run --dump</i>. The module contains the pipeline, so Fuseline can open it.")},
          }};
}

Tour gateTour() {
  return {.title = text("Guard it in CI"),
          .summary = text("Save a run, and fail CI when it gets slower"),
          .pipeline = "llama-mlp",
          .steps = {
              {.text = text("Press <b>Ctrl+Enter</b> to measure the pipeline."), .isDone = isMeasured},
              {.text = text("<b>Run &gt; Save run</b> saves the run with its device, all samples and the pipeline. "
                            "<b>Run &gt; Copy as command</b> copies the command that measures the same in a terminal."),
               .pane = QStringLiteral("runs")},
              {.text = text("In CI, <b>fuseline fuse FILE --expect PLAN.json</b> fails if the plan differs from a "
                            "saved one, and <b>fuseline compare OLD NEW --fail-if \"median&gt;+5%\"</b> fails if a run "
                            "is significantly slower. <b>fuse</b> needs no device.")},
          }};
}

}  // namespace

const std::vector<Tour>& tours() {
  static const std::vector<Tour> all = {fusionTour(), worthTour(), precisionTour(), exportTour(), gateTour()};
  return all;
}

}  // namespace fuseline::ui
