// From the rows of a sweep to lines, ranges and sentences.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_plot.h"

#include "ui/sweep/sweep_choice.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fuseline::ui {

namespace {

/// Room around what is shown, as a share of it.
constexpr double kAxisMargin = 0.08;

double sizeOf(const SweepRow& row) { return static_cast<double>(row.point.symbols.front().second); }

/// "M = 512, MXFP8BlockScaling"
QString placeOf(const SweepResult& result, const SweepRow& row) {
  const auto& [symbol, size] = row.point.symbols.front();
  const QString place = QStringLiteral("%1 = %2").arg(toQt(symbol)).arg(size);
  return result.sweep.recipes.empty() ? place : place + QStringLiteral(", ") + sweepRecipeName(row.point.recipe);
}

QString intervalText(const RatioStats& ratio) {
  return translated("95 % interval %1 to %2")
      .arg(QString::number(ratio.low, 'f', 2), QString::number(ratio.high, 'f', 2));
}

/// "1.25 times as fast", "0.80 times as fast", or that it is not statistically significant.
QString ratioWords(const RatioStats& ratio) {
  const QString times = translated("%1 times as fast").arg(QString::number(ratio.median, 'f', 2));
  return ratio.isSignificant() ? times : translated("%1, not statistically significant").arg(times);
}

SweepDot ratioDot(const SweepRow& row, std::size_t index, const RatioStats& ratio, QString words) {
  return {.size = sizeOf(row),
          .value = ratio.median,
          .low = ratio.low,
          .high = ratio.high,
          .isClear = ratio.isSignificant(),
          .row = index,
          .words = std::move(words)};
}

class SweepPlotBuilder {
 public:
  SweepPlotBuilder(const SweepResult& result, SweepQuantity quantity) : m_result(result) {
    m_plot.quantity = quantity;
    m_plot.symbol = toQt(result.sweep.axes.front().symbol);
  }

  SweepPlot build() {
    const std::size_t length = m_result.sweep.axes.front().sizes.size();
    for (std::size_t begin = 0; begin < m_result.rows.size(); begin += length)
      addLine(begin, std::min(begin + length, m_result.rows.size()));
    std::erase_if(m_plot.series, [](const SweepSeries& series) { return series.dots.empty(); });
    for (SweepSeries& series : m_plot.series) std::ranges::sort(series.dots, {}, &SweepDot::size);
    if (m_plot.quantity == SweepQuantity::Speedup) addBorders();
    collectSizes();
    setRanges();
    return std::move(m_plot);
  }

 private:
  void addLine(std::size_t begin, std::size_t end) {
    const int look = static_cast<int>(begin / m_result.sweep.axes.front().sizes.size());
    const std::string& recipe = m_result.rows[begin].point.recipe;
    const QString name = m_result.sweep.recipes.empty() ? QString() : sweepRecipeName(recipe);
    const SweepSeries line{.name = name, .recipe = name, .look = look, .dots = {}};
    switch (m_plot.quantity) {
      case SweepQuantity::Speedup: return add(line, begin, end, &SweepPlotBuilder::speedup);
      case SweepQuantity::OverFirstRecipe: return add(line, begin, end, &SweepPlotBuilder::overFirst);
      case SweepQuantity::Time:
        add(ofPlan(line, translated("unfused"), true), begin, end, &SweepPlotBuilder::unfused);
        add(ofPlan(line, translated("fused"), false), begin, end, &SweepPlotBuilder::fused);
    }
  }

  static SweepSeries ofPlan(SweepSeries line, const QString& plan, bool isDashed) {
    line.name = line.recipe.isEmpty() ? plan : translated("%1, %2").arg(line.recipe, plan);
    line.isDashed = isDashed;
    return line;
  }

  using DotOf = std::optional<SweepDot> (SweepPlotBuilder::*)(std::size_t row) const;
  void add(SweepSeries series, std::size_t begin, std::size_t end, DotOf dotOf) {
    for (std::size_t row = begin; row < end; ++row)
      if (m_result.rows[row].isMeasured())
        if (std::optional<SweepDot> dot = (this->*dotOf)(row)) series.dots.push_back(std::move(*dot));
    m_plot.series.push_back(std::move(series));
  }

  std::optional<SweepDot> speedup(std::size_t index) const {
    const SweepRow& row = m_result.rows[index];
    const RatioStats& ratio = row.figures.speedup;
    const QString words = translated("%1: fused is %2, %3");
    return ratioDot(row, index, ratio, words.arg(placeOf(m_result, row), ratioWords(ratio), intervalText(ratio)));
  }

  std::optional<SweepDot> overFirst(std::size_t index) const {
    const SweepRow& row = m_result.rows[index];
    const std::optional<RatioStats>& ratio = row.figures.overFirstRecipe;
    if (!ratio) return std::nullopt;
    const QString words = translated("%1: %2 (compared with %3), %4, not interleaved");
    const QString first = sweepRecipeName(m_result.sweep.recipes.front());
    return ratioDot(row, index, *ratio,
                    words.arg(placeOf(m_result, row), ratioWords(*ratio), first, intervalText(*ratio)));
  }

  std::optional<SweepDot> unfused(std::size_t row) const {
    return timeDot(row, m_result.rows[row].figures.unfused, translated("unfused"));
  }

  std::optional<SweepDot> fused(std::size_t row) const {
    return timeDot(row, m_result.rows[row].figures.fused, translated("fused"));
  }

  SweepDot timeDot(std::size_t index, const SampleStats& stats, const QString& plan) const {
    const SweepRow& row = m_result.rows[index];
    return {.size = sizeOf(row),
            .value = stats.median,
            .low = stats.lowerQuartile,
            .high = stats.upperQuartile,
            .row = index,
            .words = translated("%1, %2: %3").arg(placeOf(m_result, row), plan, formatTiming(stats))};
  }

  void addBorders() {
    int look = 0;
    for (const SweepLine& line : linesOf(m_result)) {
      const auto size = static_cast<double>(line.breakEven.size);
      if (line.breakEven.kind == BreakEven::Kind::From)
        m_plot.borders.push_back({size, look, translated("from %1 on").arg(line.breakEven.size)});
      if (line.breakEven.kind == BreakEven::Kind::UpTo)
        m_plot.borders.push_back({size, look, translated("up to %1").arg(line.breakEven.size)});
      ++look;
    }
  }

  void collectSizes() {
    for (const SweepSeries& series : m_plot.series)
      for (const SweepDot& dot : series.dots) m_plot.sizes.push_back(dot.size);
    std::ranges::sort(m_plot.sizes);
    m_plot.sizes.erase(std::ranges::unique(m_plot.sizes).begin(), m_plot.sizes.end());
  }

  void setRanges() {
    if (m_plot.isEmpty()) return;
    m_plot.x = padded({isGeometric(m_plot.sizes), m_plot.sizes.front(), m_plot.sizes.back()});
    AxisRange y{m_plot.quantity == SweepQuantity::Time && m_plot.x.isLogarithmic, lowest(), highest()};
    if (m_plot.isRatio()) y = {false, std::min(y.low, 1.0), std::max(y.high, 1.0)};
    if (m_plot.quantity == SweepQuantity::Time && !y.isLogarithmic) y.low = 0.0;
    m_plot.y = padded(y);
    if (m_plot.quantity == SweepQuantity::Time && !y.isLogarithmic) m_plot.y.low = 0.0;
  }

  double lowest() const {
    double low = m_plot.series.front().dots.front().low;
    for (const SweepSeries& series : m_plot.series)
      for (const SweepDot& dot : series.dots) low = std::min(low, dot.low);
    return low;
  }

  double highest() const {
    double high = 0.0;
    for (const SweepSeries& series : m_plot.series)
      for (const SweepDot& dot : series.dots) high = std::max(high, dot.high);
    return high;
  }

  /// One value alone stands in the middle.
  static AxisRange padded(AxisRange range) {
    if (range.isLogarithmic) {
      const double factor = std::max(std::pow(range.high / range.low, kAxisMargin), 1.02);
      return {true, range.low / factor, range.high * factor};
    }
    const double least = 0.02 * std::abs(range.high);
    const double margin = std::max(kAxisMargin * (range.high - range.low), least > 0.0 ? least : 1.0);
    return {false, range.low - margin, range.high + margin};
  }

  const SweepResult& m_result;
  SweepPlot m_plot;
};

}  // namespace

SweepPlot sweepPlot(const SweepResult& result, SweepQuantity quantity) {
  return SweepPlotBuilder(result, quantity).build();
}

QString nameOf(SweepQuantity quantity) {
  switch (quantity) {
    case SweepQuantity::Speedup: return translated("Speed-up from fusion");
    case SweepQuantity::Time: return translated("Time of a run");
    case SweepQuantity::OverFirstRecipe: return translated("Speed-up relative to the first recipe");
  }
  return {};
}

}  // namespace fuseline::ui
