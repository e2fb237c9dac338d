// Prepares a run for each recipe, measures them together, and lays out the table.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/recipe_matrix.h"

#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/quant/small_layers.h"
#include "core/runtime/quantized_linears.h"
#include "core/support/field_table.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace recipe_matrix_parts {

struct MatrixRow {
  const RecipeDefinition* recipe = nullptr;
  std::unique_ptr<PipelineRun> run;  // null: it does not fit
  std::string reason;                // why it does not, or not everywhere
  QuantizedLinears linears;
  RunRecord record;
  std::optional<NumericsReport> numerics;  // nothing: not wanted
};

/// Why not every layer gains, in sentences: those that stay unquantized, and those that quantizing makes slower.
std::string reasonOf(const Analysis& analysis, const std::string& ofLinears) {
  const std::vector<Diagnostic>& diagnostics = analysis.lowered.diagnostics;
  const auto small = std::ranges::find(diagnostics, kSmallLayersCode, &Diagnostic::code);
  if (small == diagnostics.end()) return ofLinears;
  return ofLinears.empty() ? small->message : ofLinears + " " + small->message;
}

/// A recipe that would quantize nothing is no row of its own. heldBytes: by the rows before.
MatrixRow prepared(const MatrixRequest& request, const RecipeDefinition& recipe, std::int64_t heldBytes,
                   Context& context) {
  MatrixRow row{.recipe = &recipe, .run = nullptr, .reason = {}, .record = {}, .numerics = std::nullopt};
  PipelineRunOptions options = request.options;
  options.settings.recipe = recipe.name;
  options.heldBytes = heldBytes;
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(request.loaded, request.pipelineName, std::move(options), context.registry);
  if (!run) {
    row.reason = run.error().message;
    return row;
  }
  row.run = std::move(*run);
  row.linears = quantizedLinears(row.run->analysis());
  row.reason = reasonOf(row.run->analysis(), row.linears.reason);
  if (const Verdict quantizes = quantizesAnything(row.run->analysis()); !quantizes) {
    row.reason = quantizes.reason();
    row.run.reset();
  }
  return row;
}

/// Measurements stay if they fail.
void lookAtNumerics(MatrixRow& row, const std::stop_token& cancel) {
  Result<NumericsReport> numerics = row.run->numerics(cancel);
  if (numerics)
    row.numerics = std::move(*numerics);
  else
    row.reason = numerics.error().message;
}

Result<void> measure(std::vector<MatrixRow>& rows, const MatrixRequest& request, const std::stop_token& cancel) {
  std::vector<PipelineRun*> runs;
  for (const MatrixRow& row : rows)
    if (row.run) runs.push_back(row.run.get());
  if (runs.empty()) return Error{rows.front().reason, ErrorKind::RunFailed};
  ProgressBar bar(!request.isQuiet);
  const auto show = [&](std::string_view stage, int done, int total) { bar.show(stage, done, total); };
  Result<std::vector<RunRecord>> records = PipelineRun::measureTogether(runs, show, cancel);
  if (!records) return records.error();
  auto record = records->begin();
  for (MatrixRow& row : rows) {
    if (!row.run) continue;
    row.record = std::move(*record++);
    if (request.wantsNumerics && !cancel.stop_requested()) lookAtNumerics(row, cancel);
  }
  return {};
}

/// "12.3 ms ±4 %" of a variant that ran.
std::string timeText(const MatrixRow& row, const char* variant) {
  const VariantRecord* const record = row.record.variant(variant);
  if (!record || record->endToEndNs.empty()) return "";
  const SampleStats stats = summarize(record->endToEndNs);
  return fmt::format("{:.3f} ±{}", stats.median * 1e-6, spreadText(stats));
}

const VariantRecord& lastVariant(const MatrixRow& row) { return row.record.variants.back(); }

std::int64_t numFusions(const MatrixRow& row) {
  const FusionReport& report = row.run->analysis().report;
  return std::ranges::count_if(report.forward, &FusedOperation::isFused) +
         std::ranges::count_if(report.backward, &FusedOperation::isFused);
}

/// The times of the last variant over those of the first row, round by round. Nothing: one of them has no rounds.
std::optional<RatioStats> ratioTo(const MatrixRow& first, const MatrixRow& row) {
  if (&first == &row || !first.run || !row.run || lastVariant(row).endToEndNs.empty()) return std::nullopt;
  return compareRounds(lastVariant(row).endToEndNs, lastVariant(first).endToEndNs);
}

std::string ratioText(const std::optional<RatioStats>& ratio) {
  return ratio ? fmt::format("{}{:.2f}x", ratio->isSignificant() ? "" : "~", ratio->median) : "";
}

std::vector<Cell> cellsOf(const MatrixRow& row, const MatrixRow& first) {
  if (!row.run) return {{row.recipe->name, Style::Dim}, {"does not fit", Style::Dim}};
  const ErrorNumerics* const worst = row.numerics ? row.numerics->worst() : nullptr;
  return {row.recipe->name,
          timeText(row, "unfused"),
          timeText(row, "fused"),
          ratioText(ratioTo(first, row)),
          formatBytes(lastVariant(row).peakBytes),
          formatBytes(lastVariant(row).savedForBackwardBytes),
          row.numerics ? shareText(row.numerics->worstUnderflow()) : "",
          fmt::format("{}", numFusions(row)),
          row.linears.share(),
          worst ? fmt::format("{:.1e}", worst->rmsRelative) : "",
          worst ? worst->name : ""};
}

std::string matrixTable(const std::vector<MatrixRow>& rows, bool hasColour) {
  Table table({{"recipe", Align::Left},
               {"unfused ms %"},
               {"fused ms %"},
               {"of " + rows.front().recipe->name},
               {"peak"},
               {"kept"},
               {"underflow"},
               {"fusions"},
               {"linears"},
               {"rms error"},
               {"worst in", Align::Left}});
  for (const MatrixRow& row : rows) table.addRow(cellsOf(row, rows.front()));
  table.dropEmptyColumns();
  return table.toString(hasColour);
}

constexpr std::string_view kLegend =
    "Medians of interleaved rounds; ± is half the interquartile range. of {}: fused time / fused time of the first "
    "row; below 1x is faster; ~ marks a ratio that is not significant. linears: number of quantized linear layers.{} "
    "On "
    "a CPU formats are emulated, so times are not those of tensor cores.\n";

std::string notes(const std::vector<MatrixRow>& rows) {
  std::string text;
  for (const MatrixRow& row : rows)
    if (!row.reason.empty()) text += wrappedLines(fmt::format("{}: {}\n", row.recipe->name, row.reason), 0);
  const bool hasErrors = std::ranges::any_of(rows, [](const MatrixRow& row) { return row.numerics.has_value(); });
  for (const MatrixRow& row : rows)
    if (row.recipe->hardware)
      text += fmt::format("{} {} for its own GEMMs.\n", row.recipe->name, hardwareText(*row.recipe));
  return text + wrappedLines(fmt::format(kLegend, rows.front().recipe->name,
                                         hasErrors ? " Errors are relative to the same pipeline in float32." : ""),
                             0);
}

Json toJson(const MatrixRow& row, const MatrixRow& first) {
  const std::optional<RatioStats> ratio = ratioTo(first, row);
  return {{"recipe", row.recipe->name},
          {"fits", row.run != nullptr},
          {"reason", row.reason},
          {"record", row.run ? fuseline::toJson(row.record) : Json()},
          {"numerics", row.numerics ? fuseline::toJson(*row.numerics) : Json()},
          {"timeRatio", ratio ? Json(ratio->median) : Json()},
          {"timeRatioLow", ratio ? Json(ratio->low) : Json()},
          {"timeRatioHigh", ratio ? Json(ratio->high) : Json()},
          {"fusions", row.run ? numFusions(row) : 0},
          {"linears", row.linears.total},
          {"quantizedLinears", row.linears.quantized}};
}

void print(const std::vector<MatrixRow>& rows, const MatrixRequest& request, Context& context) {
  if (request.asJson) {
    Json list = Json::array();
    for (const MatrixRow& row : rows) list.push_back(toJson(row, rows.front()));
    return printJson(context, {{"recipes", std::move(list)}});
  }
  if (request.isQuiet) return;
  context.out << matrixTable(rows, context.hasColour) << "\n" << styled(notes(rows), Style::Dim, context.hasColour);
}

}  // namespace recipe_matrix_parts
}  // namespace

Result<int> runRecipes(const MatrixRequest& request, Context& context, const std::stop_token& cancel) {
  using namespace recipe_matrix_parts;
  std::vector<MatrixRow> rows;
  std::int64_t heldBytes = 0;
  for (const RecipeDefinition* recipe : request.recipes) {
    rows.push_back(prepared(request, *recipe, heldBytes, context));
    if (rows.back().run) heldBytes += rows.back().run->heldBytes();
  }
  if (Result<void> measured = measure(rows, request, cancel); !measured) return measured.error();
  print(rows, request, context);
  const auto isPartial = [](const MatrixRow& row) { return row.record.isPartial; };
  if (std::ranges::any_of(rows, isPartial) || cancel.stop_requested())
    return Error{"The run was cancelled.", ErrorKind::RunFailed};
  return 0;
}

/// `--recipe all`, or a list.
Json matrixSchema() {
  const Json row =
      schema::object({{"recipe", schema::text("Name of the recipe.")},
                      {"fits", schema::flag("Whether the recipe was measured.")},
                      {"reason", schema::text("Reason why the recipe does not apply to all layers; empty: it does.")},
                      {"record", schema::orNull(fieldSchema<RunRecord>())},
                      {"numerics", schema::orNull(fieldSchema<NumericsReport>())},
                      {"timeRatio", schema::orNull(schema::number("Time / time of the first row, per round."))},
                      {"timeRatioLow", schema::orNull(schema::number("Lower end of its 95 % confidence interval."))},
                      {"timeRatioHigh", schema::orNull(schema::number("Upper end of its 95 % confidence interval."))},
                      {"fusions", schema::integer("Fused entries of both passes.")},
                      {"linears", schema::integer("Number of linear ops.")},
                      {"quantizedLinears", schema::integer("Linear layers that the recipe quantizes.")}});
  return schema::object({{"recipes", schema::list(row)}});
}

}  // namespace fuseline::cli
