// Writes boxes of the timeline as complete events, parents before children.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/chrome_trace.h"

#include "core/profile/launch_wait.h"
#include "core/profile/stats.h"
#include "core/profile/timeline.h"
#include "core/support/json.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The format counts in microseconds; its decimals are nanoseconds.
double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

Json metadata(std::string_view name, int process, int thread, Json args) {
  return {{"ph", "M"}, {"name", name}, {"pid", process}, {"tid", thread}, {"args", std::move(args)}};
}

const char* categoryOf(TimelineLevel level) {
  switch (level) {
    case TimelineLevel::Pass: return "pass";
    case TimelineLevel::Step: return "step";
    case TimelineLevel::Activity: return "kernel";
    case TimelineLevel::Launch: return "launch";
    case TimelineLevel::RankStep: return "rank";
  }
  return "";
}

Json stepArgs(const StepRecord& step) {
  Json args = {{"ops", step.ops},       {"pass", step.phase},  {"kernel", step.kernel},
               {"writes", step.writes}, {"flops", step.flops}, {"bytes", step.bytes}};
  if (!step.rule.empty()) args["rule"] = step.rule;
  if (!step.note.empty()) args["note"] = step.note;
  const SampleStats stats = summarize(step.samplesNs);
  if (stats.count > 0) args["median of all rounds (ns)"] = stats.median;
  if (stats.hasSpread()) args["spread of all rounds (%)"] = stats.spreadPercent();
  return args;
}

/// The events of one variant, which is a process of the trace.
class VariantEvents {
 public:
  VariantEvents(const VariantRecord& variant, int process, Json& events)
      : m_variant(variant),
        m_layout(layOut(variant)),
        m_waitsNs(launchWaitsNs(variant)),
        m_rankWaitsNs(rankWaitsNs(variant)),
        m_process(process),
        m_events(events) {}

  void write() {
    nameAll();
    findFlows();
    for (std::size_t box = 0; box < m_layout.boxes.size(); ++box) {
      writeBox(m_layout.boxes[box]);
      writeFlows(box);
    }
    for (const TimelineBox& box : m_layout.boxes)
      if (box.level == TimelineLevel::Step && box.durationNs() > 0) writeCounters(box);
  }

 private:
  /// Where an arrow begins ("s") or ends ("f").
  struct FlowEnd {
    const char* type;
    int flow;
  };

  void nameAll() {
    const std::string title = fmt::format("{} (round {} of {})", m_variant.name, m_variant.timeline.round + 1,
                                          m_variant.instrumentedNs.size());
    m_events.push_back(metadata("process_name", m_process, 0, {{"name", title}}));
    m_events.push_back(metadata("process_sort_index", m_process, 0, {{"sort_index", m_process}}));
    for (int lane = 0; lane < m_layout.numLanes; ++lane) {
      m_events.push_back(metadata("thread_name", m_process, lane, {{"name", laneName(m_layout, lane)}}));
      m_events.push_back(metadata("thread_sort_index", m_process, lane, {{"sort_index", lane}}));
    }
  }

  /// From where an op runs forward to where its gradients are made.
  void findFlows() {
    std::map<std::string_view, std::size_t> forward;  // boxes by op
    int numFlows = 0;
    for (std::size_t box = 0; box < m_layout.boxes.size(); ++box)
      if (isStep(box, "forward"))
        for (const std::string& op : stepOf(m_layout.boxes[box]).ops) forward.emplace(op, box);
    for (std::size_t box = 0; box < m_layout.boxes.size(); ++box) {
      if (!isStep(box, "backward")) continue;
      std::set<std::size_t> origins;
      for (const std::string& op : stepOf(m_layout.boxes[box]).ops)
        if (const auto found = forward.find(op); found != forward.end()) origins.insert(found->second);
      for (const std::size_t origin : origins) {
        m_flowEnds.emplace(origin, FlowEnd{"s", numFlows});
        m_flowEnds.emplace(box, FlowEnd{"f", numFlows++});
      }
    }
  }

  bool isStep(std::size_t box, std::string_view phase) const {
    return m_layout.boxes[box].level == TimelineLevel::Step && stepOf(m_layout.boxes[box]).phase == phase;
  }

  const StepRecord& stepOf(const TimelineBox& box) const { return m_variant.steps[static_cast<std::size_t>(box.step)]; }

  Json event(const char* type, const TimelineBox& box, std::string name) const {
    return {{"ph", type},
            {"name", std::move(name)},
            {"pid", m_process},
            {"tid", box.lane},
            {"ts", microseconds(box.startNs)}};
  }

  void writeBox(const TimelineBox& box) {
    Json item = event("X", box, nameOf(m_variant, box));
    item["dur"] = microseconds(box.durationNs());
    item["cat"] = categoryOf(box.level);
    item["args"] = argsOf(box);
    m_events.push_back(std::move(item));
  }

  Json argsOf(const TimelineBox& box) const {
    if (box.level == TimelineLevel::Pass) return Json::object();
    if (box.level == TimelineLevel::Step) return stepArgs(stepOf(box));
    if (box.level == TimelineLevel::Launch) return launchArgs(box);
    if (box.level == TimelineLevel::RankStep) return rankArgs(box);
    Json args = {{"configuration", activityOf(m_variant, box)->configuration}};
    if (box.step >= 0) args["step"] = stepOf(box).name;
    return args;
  }

  Json launchArgs(const TimelineBox& box) const {
    Json args = Json::object();
    if (box.step >= 0) args["step"] = stepOf(box).name;
    if (box.step >= 0 && !m_waitsNs.empty())
      args["the device waited (ns)"] = m_waitsNs[static_cast<std::size_t>(box.step)];
    return args;
  }

  Json rankArgs(const TimelineBox& box) const {
    const auto rank = static_cast<std::size_t>(box.lane - m_layout.firstRankLane());
    const StepRecord& step = stepOf(box);
    Json args = {{"rank", rank}, {"step", step.name}, {"pass", step.phase}};
    if (step.collective.empty()) return args;
    args["collective"] = step.collective;
    args["bytes sent by the rank"] = step.wireBytes;
    args["waited for other ranks (ns)"] = m_rankWaitsNs[static_cast<std::size_t>(box.step)][rank];
    return args;
  }

  /// Directly after the step's own event: an arrow ends in the event that began last.
  void writeFlows(std::size_t box) {
    const auto [first, last] = m_flowEnds.equal_range(box);
    for (auto end = first; end != last; ++end) {
      Json item = event(end->second.type, m_layout.boxes[box], "forward to backward");
      item["cat"] = "flow";
      item["id"] = fmt::format("{}.{}", m_process, end->second.flow);
      if (*end->second.type == 'f') item["bp"] = "e";
      m_events.push_back(std::move(item));
    }
  }

  /// Rates of the step, from the model's count of its work and the measured time; zero after its end.
  void writeCounters(const TimelineBox& box) {
    const StepRecord& step = stepOf(box);
    const auto durationNs = static_cast<double>(box.durationNs());
    for (const auto& [name, work] :
         {std::pair("GB/s", static_cast<double>(step.bytes)), {"TFLOP/s", static_cast<double>(step.flops) / 1e3}}) {
      Json item = event("C", box, name);
      item["args"] = {{name, work / durationNs}};
      m_events.push_back(item);
      item["ts"] = microseconds(box.endNs);
      item["args"] = {{name, 0.0}};
      m_events.push_back(std::move(item));
    }
  }

  const VariantRecord& m_variant;
  TimelineLayout m_layout;
  std::vector<double> m_waitsNs;                   // by step; may be empty
  std::vector<std::vector<double>> m_rankWaitsNs;  // by step, then by rank
  int m_process;
  std::multimap<std::size_t, FlowEnd> m_flowEnds;  // by box
  Json& m_events;
};

/// Notes may overlap, so they are asynchronous events, each with a separate id.
void writeNotes(const RunRecord& record, const std::string& variant, int process, Json& events) {
  int number = 0;
  for (const StretchNote& note : record.stretchNotes) {
    ++number;
    if (!note.variant.empty() && note.variant != variant) continue;
    Json item = {
        {"ph", "b"},      {"cat", "note"}, {"name", note.text},       {"id", fmt::format("note{}.{}", process, number)},
        {"pid", process}, {"tid", 0},      {"ts", note.startNs / 1e3}};
    events.push_back(item);
    item["ph"] = "e";
    item["ts"] = note.endNs / 1e3;
    events.push_back(std::move(item));
  }
}

Json otherData(const RunRecord& record) {
  Json data = {{"pipeline", record.title()},
               {"pipeline hash", record.pipelineHash},
               {"created with", record.createdWith},
               {"pass", nameOf(record.settings.pass)},
               {"recipe", record.settings.recipe},
               {"steps timed by", nameOf(record.settings.timing)},
               {"rounds shown", "the round with the median total, for each variant"}};
  for (const auto& [name, value] : record.environment) data[name] = value;
  return data;
}

}  // namespace

Result<std::string> chromeTrace(const RunRecord& record) {
  if (const std::string reason = whyNoTimeline(record); !reason.empty())
    return Error{
        fmt::format("{}: a trace needs a timeline, but this run has none: {}. Measure again: `fuseline run PIPELINE -o "
                    "RUN.fuserun`.",
                    record.title(), reason)};
  Json events = Json::array();
  int process = 0;
  for (const VariantRecord& variant : record.variants) {
    ++process;
    if (variant.timeline.spans.empty()) continue;
    VariantEvents(variant, process, events).write();
    writeNotes(record, variant.name, process, events);
  }
  const Json trace = {{"displayTimeUnit", "ns"}, {"otherData", otherData(record)}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fuseline
