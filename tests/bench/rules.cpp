// Times every rule of the rule set by itself: its sample pipelines, widened, unfused and fused interleaved on the CPU.
//
// Usage: bench_rules [part of a rule's name [rounds]]. A line has the medians of the forward and backward passes
// together, half their interquartile ranges, and the speed-up: the median over rounds with its 95 % interval.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/profile/stats.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/rule_samples.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr std::int64_t kRows = 1024;
constexpr std::int64_t kCols = 1024;

template <class T>
T valueOf(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

/// The sample with its columns multiplied so that there are kCols of them.
Graph widened(const RuleSample& sample) {
  const std::int64_t factor = kCols / sample.shape.back();
  std::vector<Link> links = sample.links;
  for (Link& link : links)
    if (link.attributes.has("out_features"))
      link.attributes.set("out_features", link.attributes.integer("out_features") * factor);
  return chain(DType::BF16, {kRows, sample.shape.back() * factor}, links, sample.options);
}

/// A plan that is ready to run. The graph outlives it.
class Variant {
 public:
  Variant(const Graph& graph, const FusionReport& report, const std::shared_ptr<Backend>& backend)
      : m_plan(makePlan(graph, report)),
        m_executor(valueOf(Executor::create(backend, graph, m_plan, valueOf(makeBindings(graph, 1))))) {}

  double milliseconds() {
    const auto start = std::chrono::steady_clock::now();
    valueOf(m_executor->run());
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Plan m_plan;
  std::unique_ptr<Executor> m_executor;
};

std::string timeText(const std::vector<double>& milliseconds) {
  const SampleStats stats = summarize(milliseconds);
  return fmt::format("{:8.3f} ms +-{:4.1f} %", stats.median, stats.spreadPercent());
}

void measure(const std::string& name, Variant unfused, Variant fused, int rounds) {
  std::vector<double> before;
  std::vector<double> after;
  unfused.milliseconds();
  fused.milliseconds();
  for (int round = 0; round < rounds; ++round) {
    before.push_back(unfused.milliseconds());
    after.push_back(fused.milliseconds());
  }
  const RatioStats speedup = compareRounds(before, after);
  fmt::print("{:<68} {} {} {:5.2f} [{:4.2f}, {:4.2f}]\n", name, timeText(before), timeText(after), speedup.median,
             speedup.low, speedup.high);
  std::fflush(stdout);
}

void measure(const FusionRule& rule, const RuleSample& sample, int rounds) {
  const auto backend = cpu::makeCpuBackend();
  RuleCatalog catalog;
  if (const Result<void> added = catalog.registerFusion(rule); !added) throw std::runtime_error(added.error().message);
  const Graph graph = widened(sample);
  const FusionOptions options{.switches = everythingAsked(catalog),
                              .capabilities = capabilitiesOf(backend),
                              .rules = &catalog,
                              .target = sample.target};
  const FusionReport report = valueOf(fuse(graph, options));
  const FusionReport basic = unfused(graph);
  if (toText(graph, report.forward) == toText(graph, basic.forward) &&
      toText(graph, report.backward) == toText(graph, basic.backward) && report.fusedOperands.empty())
    return;  // no kernel on this device
  measure(rule.name + ", " + sample.label, Variant(graph, basic, backend), Variant(graph, report, backend), rounds);
}

void measureAll(const std::string& part, int rounds) {
  for (const FusionRule* rule : builtinRules().all()) {
    if (rule->name.find(part) == std::string::npos) continue;
    for (const RuleSample& sample : ruleSamples(rule->name)) {
      try {
        measure(*rule, sample, rounds);
      } catch (const std::exception& problem) {  // attributes that do not fit the wider pipeline
        fmt::print("{}, {}: left out. {}\n", rule->name, sample.label, problem.what());
      }
    }
  }
}

}  // namespace
}  // namespace fuseline

int main(int argc, char** argv) { fuseline::measureAll(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 15); }
