// Converts the steps of a run to dots under the device's peaks.
// SPDX-License-Identifier: Apache-2.0
#include "ui/roofline/roofline_plot.h"

#include "core/profile/roofline.h"
#include "ui/theme/format.h"
#include "ui/timings/step_category.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fuseline::ui {

namespace {

/// Room around what is shown, as a factor.
constexpr double kMargin = 1.6;
/// To the right of the ridge and of all dots, for the names of the ceilings.
constexpr double kRoomForNames = 3.0;
/// From end to end, so that a power of ten is in between.
constexpr double kShortest = 10.0;

QString passText(const StepRecord& step, const VariantRecord& variant) {
  return translated("%1, %2 plan").arg(toQt(step.phase), toQt(variant.name));
}

QStringList factsOf(const StepRecord& step, const Efficiency& made) {
  QStringList facts = {formatTiming(summarize(step.samplesNs)), formatEfficiency(made),
                       translated("%1 FLOP per byte").arg(formatThreeDigits(made.intensity()))};
  if (made.leastNs > 0.0) facts.append(translated("roofline limit %1").arg(formatDurationNs(made.leastNs)));
  return facts;
}

RooflineDot dotOf(const StepRecord& step, const VariantRecord& variant, const Efficiency& made, const Graph* graph) {
  RooflineDot dot{.label = toQt(step.name),
                  .category = categoryOf(step, graph),
                  .isOfFusedPlan = variant.name == "fused",
                  .phase = phaseNamed(step.phase),
                  .intensity = made.intensity(),
                  .gflops = made.gflops(),
                  .timeNs = made.timeNs};
  for (const std::string& owner : step.owners) dot.owners.append(toQt(owner));
  const QStringList facts = QStringList{passText(step, variant)} + factsOf(step, made);
  dot.words = dot.label + QStringLiteral(": ") + facts.join(QStringLiteral(", "));
  dot.tip = QStringLiteral("<b>%1</b>").arg(dot.label.toHtmlEscaped());
  for (const QString& fact : facts) dot.tip += QStringLiteral("<br>") + fact.toHtmlEscaped();
  return dot;
}

RooflineLines linesOf(const DevicePeaks& peaks) {
  RooflineLines lines{.memoryGBps = peaks.copyGBps};
  for (const auto& [arithmetic, gflops] : {std::pair(Arithmetic::F32, peaks.fmaF32Gflops),
                                           {Arithmetic::Bf16, peaks.bf16Gflops},
                                           {Arithmetic::Fp8, peaks.fp8Gflops}})
    if (gflops > 0.0) lines.ceilings.push_back({toQt(arithmeticName(arithmetic)), gflops});
  std::ranges::sort(lines.ceilings, std::ranges::greater(), &RooflineCeiling::gflops);
  return lines;
}

class PlotBuilder {
 public:
  PlotBuilder(const RunRecord& record, const Graph* graph) : m_record(record), m_graph(graph) {}

  RooflinePlot build() {
    addPeaks();
    for (const VariantRecord& variant : m_record.variants) addDots(variant);
    addArrows();
    return std::move(m_plot);
  }

 private:
  void addPeaks() {
    if (!m_record.peaks) return;
    m_plot.measured = linesOf(*m_record.peaks);
    m_plot.published = linesOf(publishedPeaks(m_record.deviceName()).value_or(DevicePeaks()));
    std::erase_if(m_plot.published.ceilings, [&](const RooflineCeiling& ceiling) {
      return std::ranges::find(m_plot.measured.ceilings, ceiling.name, &RooflineCeiling::name) ==
             m_plot.measured.ceilings.end();
    });
  }

  void addDots(const VariantRecord& variant) {
    const Roofline roofline(m_record, variant);
    for (const StepRecord& step : variant.steps) {
      const Efficiency made = roofline.of({&step});
      if (step.isView || made.timeNs <= 0.0) continue;
      if (made.intensity() <= 0.0) {
        ++m_plot.numWithoutArithmetic;
        continue;
      }
      m_places[&step] = m_plot.dots.size();
      m_plot.dots.push_back(dotOf(step, variant, made, m_graph));
    }
  }

  /// Only where a fusion did something: a step that both plans have goes nowhere.
  void addArrows() {
    const VariantRecord* unfused = m_record.variant("unfused");
    const VariantRecord* fused = m_record.variant("fused");
    if (!unfused || !fused) return;
    const StepParts parts(*unfused, *fused);
    for (const StepRecord& step : fused->steps) {
      const auto to = m_places.find(&step);
      if (to == m_places.end() || (step.rule.empty() && step.absorbs.empty())) continue;
      for (const StepRecord* part : parts.of(step))
        if (const auto from = m_places.find(part); from != m_places.end())
          m_plot.arrows.push_back({from->second, to->second});
    }
  }

  const RunRecord& m_record;
  const Graph* m_graph;
  RooflinePlot m_plot;
  std::map<const StepRecord*, std::size_t> m_places;
};

LogRange around(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax_element(values);
  const double missing = std::sqrt(std::max(1.0, kShortest * *low / *high));
  return {*low / missing / kMargin, *high * missing * kMargin};
}

}  // namespace

bool RooflineDot::isOneOf(const QSet<QString>& selection) const {
  return std::ranges::any_of(owners, [&](const QString& id) { return selection.contains(id); });
}

RooflinePlot rooflinePlot(const RunRecord& record, const Graph* graph) { return PlotBuilder(record, graph).build(); }

LogRange intensityRange(const RooflinePlot& plot) {
  std::vector<double> values;
  for (const RooflineDot& dot : plot.dots) values.push_back(dot.intensity);
  for (const double ridge : {plot.measured.ridge(), plot.published.ridge()})
    if (ridge > 0.0) values.push_back(ridge);
  LogRange range = around(values);
  if (plot.measured.isKnown()) range.high *= kRoomForNames;
  return range;
}

LogRange speedRange(const RooflinePlot& plot) {
  std::vector<double> values;
  for (const RooflineDot& dot : plot.dots) values.push_back(dot.gflops);
  for (const RooflineLines* lines : {&plot.measured, &plot.published})
    for (const RooflineCeiling& ceiling : lines->ceilings) values.push_back(ceiling.gflops);
  return around(values);
}

}  // namespace fuseline::ui
