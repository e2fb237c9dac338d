// From a tree of times to boxes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/flame/flame_boxes.h"

#include "core/profile/stats.h"
#include "ui/theme/format.h"
#include "ui/timings/kernel_name.h"
#include "ui/timings/pass_look.h"
#include "ui/timings/step_category.h"
#include "ui/timings/step_tip.h"
#include "ui/widgets/tip_lines.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <set>

namespace fuseline::ui {

namespace {

QString line(const QString& text) { return QStringLiteral("<br>") + text; }

QString percent(double part, double whole) {
  return whole <= 0.0 ? QString() : QStringLiteral("%1 %").arg(100.0 * part / whole, 0, 'f', 1);
}

double totalNs(const std::vector<TimeNode>& nodes) {
  double ns = 0.0;
  for (const TimeNode& node : nodes) ns += node.ns;
  return ns;
}

class BoxBuilder {
 public:
  BoxBuilder(const VariantRecord& variant, const Graph* graph) : m_variant(variant), m_graph(graph) {}

  std::vector<FlameBox> build(const TimeNode& plan) {
    m_planNs = plan.ns;
    if (plan.ns > 0.0) add(plan, 0, 0, 0.0, plan.ns);
    return std::move(m_boxes);
  }

 private:
  /// shownNs: medians of parts may come to more than the median of the whole, and are drawn narrower then.
  void add(const TimeNode& node, std::size_t parent, int row, double startNs, double shownNs) {
    const std::size_t index = m_boxes.size();
    m_boxes.push_back(boxOf(node, parent));
    m_boxes.back().row = row;
    m_boxes.back().startNs = startNs;
    m_boxes.back().endNs = startNs + shownNs;
    const double scale = shownNs / std::max(totalNs(node.children), shownNs);
    for (const TimeNode& child : node.children) {
      add(child, index, row + 1, startNs, child.ns * scale);
      startNs += child.ns * scale;
    }
  }

  FlameBox boxOf(const TimeNode& node, std::size_t parent) const {
    FlameBox box{.level = node.level, .parent = parent, .isEstimate = node.isEstimate};
    box.name = toQt(node.name);
    box.label = labelOf(node);
    box.tip = tipOf(node, parent);
    box.words = box.label + QStringLiteral(": ") + timesText(node);
    if (node.level > TimeLevel::Pass) box.owners = ownersOf(node);
    if (node.steps.empty()) return box;
    const StepRecord& first = m_variant.steps[node.steps.front()];
    box.phase = phaseNamed(first.phase);
    box.isFused = node.level == TimeLevel::Step && !first.rule.empty();
    if (node.level >= TimeLevel::Step) box.category = categoryOf(first, m_graph);
    return box;
  }

  QStringList ownersOf(const TimeNode& node) const {
    std::set<std::string> owners;
    for (const std::size_t step : node.steps)
      owners.insert(m_variant.steps[step].owners.begin(), m_variant.steps[step].owners.end());
    QStringList ids;
    for (const std::string& owner : owners) ids.append(toQt(owner));
    return ids;
  }

  /// "fc1 + act · ForwardLinearEpilogue" of "ForwardLinearEpilogue(fc1, act)": what is in it says more.
  QString shortName(const TimeNode& node) const {
    if (node.level == TimeLevel::Activity) return shortKernelName(node.name);
    QString name = toQt(node.name);
    if (node.level != TimeLevel::Step) return name;
    const QString rule = toQt(m_variant.steps[node.steps.front()].rule);
    if (rule.isEmpty() || !name.startsWith(rule + u'(')) return name;
    name = name.mid(rule.size() + 1).chopped(1).replace(QStringLiteral(", "), QStringLiteral(" + "));
    return name + QStringLiteral(" · ") + rule;
  }

  QString labelOf(const TimeNode& node) const {
    const QString name = node.level == TimeLevel::Pass ? passLabel(toQt(node.name)) : shortName(node);
    return node.count == 1 ? name : translated("%1 × %2").arg(name).arg(node.count);
  }

  QString timesText(const TimeNode& node) const {
    QString text = (node.isEstimate ? translated("about %1") : QStringLiteral("%1")).arg(formatDurationNs(node.ns));
    if (node.level == TimeLevel::Plan) return text + translated(" in its steps (sum of medians)");
    return text + translated(", %1 of the plan").arg(percent(node.ns, m_planNs));
  }

  QString tipOf(const TimeNode& node, std::size_t parent) const {
    QString tip = QStringLiteral("<b>%1</b>").arg(toQt(node.name).toHtmlEscaped()) + line(timesText(node));
    if (node.level > TimeLevel::Pass && !m_boxes.empty())
      tip += line(translated("%1 of %2")
                      .arg(percent(node.ns, m_boxes[parent].lengthNs()), m_boxes[parent].label.toHtmlEscaped()));
    if (node.isEstimate)
      tip +=
          line(translated("Estimate, not measured: the time of the fused step, divided in proportion to the unfused "
                          "times of its ops."));
    if (node.count > 1) tip += line(translated("%1 steps or kernels with this name").arg(node.count));
    if (node.level != TimeLevel::Step || node.count > 1) return cappedTip(tip);
    const StepRecord& step = m_variant.steps[node.steps.front()];
    return cappedTip(tip + stepLines(step, summarize(step.samplesNs).median));
  }

  const VariantRecord& m_variant;
  const Graph* m_graph;
  double m_planNs = 0.0;
  std::vector<FlameBox> m_boxes;
};

}  // namespace

std::vector<FlameBox> flameBoxes(const RunRecord& record, const VariantRecord& variant, Instances instances,
                                 const Graph* graph) {
  return BoxBuilder(variant, graph).build(timeTree(record, variant, instances));
}

std::vector<bool> matchingBoxes(const std::vector<FlameBox>& boxes, const QRegularExpression& expression) {
  std::vector<bool> isMatch(boxes.size(), false);
  if (expression.pattern().isEmpty() || !expression.isValid()) return isMatch;
  for (std::size_t i = 0; i < boxes.size(); ++i) isMatch[i] = boxes[i].name.contains(expression);
  return isMatch;
}

double matchedNs(const std::vector<FlameBox>& boxes, const std::vector<bool>& isMatch) {
  double ns = 0.0;
  std::vector<bool> isCounted(boxes.size(), false);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const bool isWithin = i > 0 && isCounted[boxes[i].parent];
    isCounted[i] = isWithin || (isMatch[i] && !boxes[i].isEstimate);
    if (isCounted[i] && !isWithin) ns += boxes[i].lengthNs();
  }
  return ns;
}

}  // namespace fuseline::ui
