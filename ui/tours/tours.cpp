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
  const FusionReport& report = session.analysis()->report;
  const auto isOfRule = [&](const FusedOperation& entry) { return entry.isFused() && entry.rule->name == rule; };
  return std::ranges::any_of(report.forward, isOfRule) || std::ranges::any_of(report.backward, isOfRule);
}

auto fused(const char* rule) {
  return [rule](const Session& session) { return isFused(session, rule); };
}

auto notFused(const char* rule) {
  return [rule](const Session& session) { return session.analysis()->isRunnable() && !isFused(session, rule); };
}

auto selected(const char* op) {
  return [op](const Session& session) { return session.selection().contains(QString::fromLatin1(op)); };
}

bool isMeasured(const Session& session) { return session.lastRun() && !session.lastRun()->isStale; }
bool areNumericsMeasured(const Session& session) { return session.lastNumerics() && !session.lastNumerics()->isStale; }
bool hasBaseline(const Session& session) { return !session.baselines().isEmpty(); }
bool isQuantized(const Session& session) {
  return session.analysis()->recipe && session.analysis()->recipe->name() != "None";
}

// ---- The tours, in the order of the guide's first steps.

Tour fusionTour() {
  return {
      .title = text("Make a fusion happen"),
      .summary = text("What fuses in a layer, why something else does not, and what to do about it"),
      .pipeline = "llama-mlp",
      .steps = {
          {.text = text("Ops inside a solid outline run as one in the forward pass, those inside a dashed one in the "
                        "backward pass. Click <b>add</b>, the last op."),
           .isDone = selected("add")},
          {.text = text("The outline says that <b>fc2</b> and <b>add</b> are one step, by TransformerEngine's rule "
                        "ForwardLinearBiasAdd. Switch <b>in_place</b> off in the Inspector."),
           .pane = QStringLiteral("inspector"),
           .isDone = notFused("ForwardLinearBiasAdd")},
          {.text = text("Now a rule of Fuseline's own takes both ops; TransformerEngine would leave them apart. <b>Why "
                        "not?</b> says which condition of ForwardLinearBiasAdd fails, with what it found. Press <b>Set "
                        "add.in_place to true</b> there."),
           .pane = QStringLiteral("whyNot"),
           .isDone = fused("ForwardLinearBiasAdd")},
          {.text = text("It fuses as before. A repair is one step of Undo (Ctrl+Z), and the panel <b>Rules</b> is the "
                        "whole book in the order in which rules are tried, with where each of them hit."),
           .pane = QStringLiteral("rules")},
      }};
}

Tour worthTour() {
  return {.title = text("See what a fusion is worth"),
          .summary = text("Both plans measured in turns, a baseline, and a run without one fusion"),
          .pipeline = "llama-mlp",
          .steps = {
              {.text = text("Press <b>Ctrl+Enter</b>. The pipeline runs unfused and fused, in turns, so that both see "
                            "the same machine; it stops when the medians are certain enough, or by <b>Esc</b>."),
               .isDone = isMeasured},
              {.text = text("<b>Timings</b> sets each fused op above the basic ops that it replaced. A tilde, or "
                            "brackets, mean: this could be chance. Press <b>Ctrl+B</b> to keep this run as baseline."),
               .pane = QStringLiteral("timings"),
               .isDone = hasBaseline},
              {.text = text("Click the label <b>backward · BackwardAddRMSNorm</b>, or its entry in the plan, and press "
                            "<b>T</b>: this fusion is switched off at this place only."),
               .pane = QStringLiteral("plan"),
               .isDone = notFused("BackwardAddRMSNorm")},
              {.text = text("What was measured is of another plan now, and says so. Press <b>Ctrl+Enter</b> again."),
               .isDone = isMeasured},
              {.text = text("Every time stands beside the baseline's, with the difference where it is no chance. "
                            "<b>Timeline</b> shows when each step ran, <b>Roofline</b> how far it is from what this "
                            "device can do."),
               .pane = QStringLiteral("timings")},
          }};
}

Tour precisionTour() {
  return {.title = text("FP8 against bf16"),
          .summary = text("A recipe, what it does to the plan, and what it loses in each tensor"),
          .pipeline = "llama-mlp",
          .steps = {
              {.text = text("Choose a recipe in the tool bar, such as <b>Float8CurrentScaling</b>."),
               .isDone = isQuantized},
              {.text = text("Chips on the wires say what each tensor becomes, and outlines which ops now write the "
                            "codes themselves. <b>Ctrl+Shift+Enter</b> measures what that does to the numbers."),
               .isDone = areNumericsMeasured},
              {.text = text("<b>Numerics</b> says how far each result is from float32, and what quantization lost. "
                            "Click a quantized tensor: its histogram shows what the format can hold of it, and another "
                            "recipe can be tried on it there. On a CPU the formats are emulated: the numbers are "
                            "theirs, the times are not."),
               .pane = QStringLiteral("numerics")},
          }};
}

Tour exportTour() {
  return {
      .title = text("Take it into training code"),
      .summary = text("The pipeline as a module of TransformerEngine, and a check that both fuse alike"),
      .pipeline = "gpt-mlp",
      .steps = {
          {.text = text("<b>Ctrl+E</b> shows the pipeline as a module of TransformerEngine's <b>te.ops</b>, with "
                        "its residual as a channel and the recipe around it. Notes say where both differ. Save it "
                        "as <i>mlp.py</i>, or close the window again.")},
          {.text = text("On a machine with TransformerEngine <b>python3 mlp.py --plan</b> sets what it fuses beside "
                        "what Fuseline expects, and <b>--check</b> compares tensors with those of <i>fuseline run "
                        "--dump</i>. The file opens here again: the pipeline stands in it.")},
      }};
}

Tour gateTour() {
  return {
      .title = text("Keep it that way"),
      .summary = text("A run on file, and gates for continuous integration"),
      .pipeline = "llama-mlp",
      .steps = {
          {.text = text("Press <b>Ctrl+Enter</b> to measure what is to be kept."), .isDone = isMeasured},
          {.text = text("<b>Run &gt; Save the run</b> writes it with the device, all samples and the pipeline. "
                        "<b>Run &gt; Copy as a command</b> is what measures the same in a terminal."),
           .pane = QStringLiteral("runs")},
          {.text = text("In continuous integration <b>fuseline fuse FILE --expect RULE</b> fails when a fusion no "
                        "longer applies, and <b>fuseline compare OLD NEW --fail-if \"median&gt;+5%\"</b> when a run "
                        "got slower, and not by chance. Both need no window; the first needs no device.")},
      }};
}

}  // namespace

const std::vector<Tour>& tours() {
  static const std::vector<Tour> all = {fusionTour(), worthTour(), precisionTour(), exportTour(), gateTour()};
  return all;
}

}  // namespace fuseline::ui
