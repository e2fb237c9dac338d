// Lays out a numerics report for the terminal.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/numerics_table.h"

#include "app/cli/stat_cells.h"
#include "app/cli/table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

/// From which on a share is worth a second look.
constexpr double kNotableShare = 0.01;

Cell shareCell(double share) { return {shareText(share), share >= kNotableShare ? Style::Bold : Style::Plain}; }

std::string scaleText(const QuantizationLosses& losses) {
  if (losses.scaleInvMin == losses.scaleInvMax) return fmt::format("{:.3g}", losses.scaleInvMin);
  return fmt::format("{:.2g} .. {:.2g}", losses.scaleInvMin, losses.scaleInvMax);
}

std::string decibels(double ratio) { return std::isfinite(ratio) ? fmt::format("{:.1f}", ratio) : "exact"; }

std::string copiesTable(const NumericsReport& report, bool hasColour) {
  if (report.copies.empty()) return fmt::format("The recipe {} quantizes nothing here.\n", report.recipe);
  Table table({{"quantized", Align::Left},
               {"format"},
               {"amax"},
               {"range 2^"},
               {"scale_inv"},
               {"underflow"},
               {"saturated"},
               {"mse"},
               {"SNR dB"}});
  for (const CopyNumerics& copy : report.copies) {
    const QuantizationLosses& losses = copy.losses;
    table.addRow({copy.name, copy.format, fmt::format("{:.3g}", losses.amax),
                  fmt::format("{:.1f}", losses.dynamicRange()), scaleText(losses), shareCell(losses.underflowShare),
                  shareCell(losses.saturationShare), fmt::format("{:.2g}", losses.meanSquaredError),
                  decibels(losses.signalToNoise)});
  }
  return table.toString(hasColour);
}

/// The number of units in the last place that 99 % of the elements are within.
std::string ulpText(const ErrorNumerics& error) {
  const double ulps = error.ulpsOf(0.99);
  return std::isfinite(ulps) ? fmt::format("{:g}", ulps) : fmt::format("> {}", 1 << (ErrorNumerics::kUlpBuckets - 3));
}

/// "pass 0.12", of the tolerance.
Cell verdictCell(const ErrorNumerics& error) {
  if (!error.isFinite) return {"FAIL", Style::Bad};
  return {fmt::format("{} {:.2f}", error.isWithin() ? "pass" : "FAIL", error.toleranceShare),
          error.isWithin() ? Style::Good : Style::Bad};
}

std::string errorsTable(const char* heading, const std::vector<ErrorNumerics>& errors, bool hasColour) {
  Table table(
      {{heading, Align::Left}, {"rms error"}, {"max error"}, {"1 - cosine"}, {"p99 error in ulp"}, {"tolerance"}});
  for (const ErrorNumerics& error : errors)
    table.addRow({error.name, fmt::format("{:.2e}", error.rmsRelative), fmt::format("{:.2e}", error.maxAbsolute),
                  fmt::format("{:.1e}", std::max(0.0, 1.0 - error.cosine)),
                  error.isFinite ? Cell(ulpText(error)) : Cell("NaN or inf", Style::Bold), verdictCell(error)});
  return table.toString(hasColour);
}

std::string frozenText(const NumericsReport& report, bool hasColour) {
  std::string text;
  for (const FrozenScale& frozen : report.frozenScales)
    text += styled(fmt::format("The scale of {} stays {:.3g} for {} more step{}: its amax history contains infinity.\n",
                               frozen.name, frozen.scale, frozen.steps, frozen.steps == 1 ? "" : "s"),
                   Style::Bold, hasColour);
  return text;
}

std::string toleranceText(double share) {
  return std::isfinite(share) ? fmt::format(" at {:.2f} of its tolerance", share) : ", beyond any tolerance";
}

/// "fused against unfused: pass; the worst is act:y at 0.12 of its tolerance"
std::string verdictText(const char* what, const std::vector<ErrorNumerics>& errors, bool hasColour) {
  const NumericsVerdict verdict = verdictOf(errors);
  if (verdict.worst.empty()) return fmt::format("{}: no results to compare.\n", what);
  return fmt::format("{}: {}; the worst is {}{}.\n", what,
                     styled(verdict.isWithin ? "pass" : "FAIL", verdict.isWithin ? Style::Good : Style::Bad, hasColour),
                     verdict.worst, toleranceText(verdict.toleranceShare));
}

std::string originText(const NumericsReport& report) {
  if (!report.firstNonFinite) return "No NaN and no infinity anywhere.\n";
  const NonFiniteOrigin& origin = *report.firstNonFinite;
  return fmt::format("The first NaN or infinity is in {}, produced by {} ({}).\n", origin.tensor, origin.step,
                     origin.phase);
}

}  // namespace

std::string numericsTable(const NumericsReport& report, bool hasColour) {
  return copiesTable(report, hasColour) + "\n" + errorsTable("against float32", report.errors, hasColour) + "\n" +
         errorsTable("fused against unfused", report.fusionErrors, hasColour) + "\n" + frozenText(report, hasColour) +
         verdictText("against float32", report.errors, hasColour) +
         verdictText("fused against unfused", report.fusionErrors, hasColour) + originText(report) +
         styled(
             "rms, max error: of the differences; rms relative to the rms of the expected values. ulp: units in the "
             "last place of\nthe tensor's dtype. tolerance: share of the tolerance used; 1 or less passes. Tolerances "
             "of rms: 1.6 % for bf16,\n0.1 % for f16 and for f32 with GEMMs, 12.5 % with FP8, 25 % with FP4; eight "
             "times as much for a single element,\nrelative to the rms of its row or column if that is larger.\n",
             Style::Dim, hasColour);
}

}  // namespace fuseline::cli
