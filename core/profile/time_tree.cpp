// Groups the steps of a plan by their names, and adds up their times.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/time_tree.h"

#include "core/document/block_operation.h"
#include "core/profile/run_pipeline.h"
#include "core/profile/step_sums.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using Path = std::vector<std::string>;

Path splitAtDots(std::string_view name) {
  Path path;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    path.emplace_back(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  path.emplace_back(name);
  return path;
}

std::string joined(const Path& path, std::size_t first) {
  return fmt::format("{}", fmt::join(path.begin() + static_cast<std::ptrdiff_t>(first), path.end(), "."));
}

double medianNs(const std::vector<double>& samplesNs) { return samplesNs.empty() ? 0.0 : summarize(samplesNs).median; }

/// Says which parts of a path are instances of blocks.
class BlockNames {
 public:
  explicit BlockNames(const RunRecord& record) {
    if (!record.pipeline.is_object()) return;
    const LoadedDocument loaded = pipelineOf(record);
    if (hasErrors(loaded.diagnostics)) return;
    addInstances(kPipeline, loaded.document.pipeline());
    for (const auto& [name, block] : loaded.document.blocks()) addInstances(name, block);
  }

  /// The path with the names of blocks in place of those of their instances.
  Path of(Path path) const {
    std::string place = kPipeline;
    for (std::string& part : path) {
      const auto block = m_blocks.find({place, part});
      if (block == m_blocks.end()) break;
      part = place = block->second;
    }
    return path;
  }

 private:
  static constexpr const char* kPipeline = "";

  void addInstances(const std::string& place, const DocumentBlock& block) {
    for (const DocumentOp& op : block.ops)
      if (const std::string_view name = blockNameOf(op); !name.empty()) m_blocks.try_emplace({place, op.id}, name);
  }

  // By the block that an instance is in, and its id.
  std::map<std::pair<std::string, std::string>, std::string> m_blocks;
};

/// A step's place: its groups from the outermost one, and its name in the last one.
struct Place {
  Path groups;
  std::string name;
};

class TreeBuilder {
 public:
  TreeBuilder(const RunRecord& record, const VariantRecord& variant, Instances instances)
      : m_variant(variant), m_instances(instances), m_blocks(record) {
    const VariantRecord* const unfused = record.variant("unfused");
    if (unfused && unfused != &variant) m_parts.emplace(*unfused, variant);
  }

  TimeNode build() {
    m_entries.push_back({.node = {.name = m_variant.name}, .children = {}});
    findGroups();
    for (std::size_t step = 0; step < m_variant.steps.size(); ++step)
      if (!m_variant.steps[step].isView && !m_variant.steps[step].samplesNs.empty()) add(step);
    if (m_entries.size() > 1) addUnattributed();
    return assembled(kRoot);
  }

 private:
  Path pathOf(const std::string& name) const {
    Path path = splitAtDots(name);
    return m_instances == Instances::Together ? m_blocks.of(std::move(path)) : path;
  }

  static std::vector<std::string> namesOf(const StepRecord& step) {
    return step.rule.empty() || step.ops.empty() ? std::vector{step.name} : step.ops;
  }

  /// Those of the names' groups that all names are in.
  Path groupsOf(const std::vector<std::string>& names) const {
    Path common = pathOf(names.front());
    common.pop_back();
    for (const std::string& name : names) {
      const Path path = pathOf(name);
      const std::size_t inGroups = std::min(common.size(), path.size() - 1);
      const auto apart =
          std::mismatch(common.begin(), common.begin() + static_cast<std::ptrdiff_t>(inGroups), path.begin());
      common.erase(apart.first, common.end());
    }
    return common;
  }

  /// fc1.quantize_input makes fc1 a group, in which the step fc1 has its place, too.
  void findGroups() {
    for (const StepRecord& step : m_variant.steps) {
      Path groups = groupsOf(namesOf(step));
      for (; !groups.empty(); groups.pop_back()) m_groups.insert(groups);
    }
  }

  Place placeOf(const StepRecord& step) const {
    const std::vector<std::string> names = namesOf(step);
    Path groups = groupsOf(names);
    if (!step.rule.empty()) return {groups, fusedName(step.rule, groups, names)};
    const Path path = pathOf(step.name);
    if (m_groups.contains(path)) return {path, path.back()};
    return {groups, joined(path, groups.size())};
  }

  /// As it is called in these groups; the whole name where it is in others.
  std::string within(const Path& groups, const std::string& name) const {
    const Path path = pathOf(name);
    const bool isIn = path.size() > groups.size() && std::equal(groups.begin(), groups.end(), path.begin());
    return joined(path, isIn ? groups.size() : 0);
  }

  /// "ForwardLinearBias(fc1.linear, fc1.bias)"
  std::string fusedName(const std::string& rule, const Path& groups, std::vector<std::string> names) const {
    for (std::string& name : names) name = within(groups, name);
    return fmt::format("{}({})", rule, fmt::join(names, ", "));
  }

  std::size_t childOf(std::size_t parent, TimeLevel level, const std::string& name) {
    const auto [found, isNew] = m_index.try_emplace({parent, level, name}, m_entries.size());
    if (!isNew) return found->second;
    m_entries[parent].children.push_back(found->second);
    m_entries.push_back({.node = {.level = level, .name = name, .count = 0}, .children = {}});
    return found->second;
  }

  /// One more of the name.
  std::size_t addTime(std::size_t parent, TimeLevel level, const std::string& name, double ns,
                      std::optional<std::size_t> step) {
    const std::size_t entry = childOf(parent, level, name);
    TimeNode& node = m_entries[entry].node;
    ++node.count;
    node.ns += ns;
    if (step) node.steps.push_back(*step);
    return entry;
  }

  std::size_t passOf(const std::string& name) {
    const std::size_t pass = childOf(kRoot, TimeLevel::Pass, name);
    m_entries[pass].node.count = 1;
    return pass;
  }

  void add(std::size_t index) {
    const StepRecord& step = m_variant.steps[index];
    const Place place = placeOf(step);
    std::size_t parent = passOf(step.phase);
    for (std::size_t depth = 0; depth < place.groups.size(); ++depth) {
      parent = childOf(parent, TimeLevel::Group, place.groups[depth]);
      m_entries[parent].node.count = numInstances(step, depth);
    }
    const std::size_t leaf = addTime(parent, TimeLevel::Step, place.name, medianNs(step.samplesNs), index);
    step.activities.empty() ? addParts(leaf, index, place.groups) : addActivities(leaf, step.activities, index);
  }

  /// Number of instances so far that share the name of the step's group at this depth.
  int numInstances(const StepRecord& step, std::size_t depth) {
    Path path = splitAtDots(namesOf(step).front());
    path.resize(depth + 1);
    const std::string instance = joined(path, 0);
    std::set<std::string>& seen = m_seen[pathOf(instance)];
    seen.insert(instance);
    return static_cast<int>(seen.size());
  }

  void addActivities(std::size_t parent, const std::vector<ActivityRecord>& activities,
                     std::optional<std::size_t> step) {
    for (const ActivityRecord& activity : activities)
      addTime(parent, TimeLevel::Activity, activity.name, medianNs(activity.samplesNs), step);
  }

  void addParts(std::size_t leaf, std::size_t index, const Path& groups) {
    const StepRecord& step = m_variant.steps[index];
    if (step.rule.empty() || !m_parts) return;
    const Steps parts = m_parts->of(step);
    const double unfusedNs = medianNs(sumPerRound(parts));
    if (unfusedNs <= 0.0) return;
    const double shareOfNs = medianNs(step.samplesNs) / unfusedNs;
    for (const StepRecord* part : parts) {
      if (part->isView) continue;
      const double ns = medianNs(part->samplesNs) * shareOfNs;
      const std::size_t entry = addTime(leaf, TimeLevel::Part, within(groups, part->name), ns, index);
      m_entries[entry].node.isEstimate = true;
    }
  }

  void addUnattributed() {
    if (m_variant.unattributed.empty()) return;
    addActivities(passOf("outside of all steps"), m_variant.unattributed, std::nullopt);
  }

  /// The node with its children, and with the sum of their times if it has no time of its own.
  TimeNode assembled(std::size_t entry) {
    TimeNode node = std::move(m_entries[entry].node);
    const bool addsUp = node.level != TimeLevel::Step;
    for (const std::size_t index : m_entries[entry].children) {
      const TimeNode& child = node.children.emplace_back(assembled(index));
      if (!addsUp) continue;
      node.ns += child.ns;
      node.steps.insert(node.steps.end(), child.steps.begin(), child.steps.end());
    }
    return node;
  }

  struct Entry {
    TimeNode node;
    std::vector<std::size_t> children;
  };
  static constexpr std::size_t kRoot = 0;

  const VariantRecord& m_variant;
  std::optional<StepParts> m_parts;  // nothing: there is no unfused plan, or it is this one
  Instances m_instances;
  BlockNames m_blocks;
  std::set<Path> m_groups;
  std::map<Path, std::set<std::string>> m_seen;  // instances, by the path of their shared name
  std::vector<Entry> m_entries;
  std::map<std::tuple<std::size_t, TimeLevel, std::string>, std::size_t> m_index;  // by parent
};

}  // namespace

TimeNode timeTree(const RunRecord& record, const VariantRecord& variant, Instances instances) {
  return TreeBuilder(record, variant, instances).build();
}

}  // namespace fuseline
