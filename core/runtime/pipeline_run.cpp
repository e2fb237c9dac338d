// Takes a document through every stage and measures it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/pipeline_run.h"

#include "core/document/pipeline_hash.h"
#include "core/profile/doubts.h"
#include "core/profile/roofline.h"
#include "core/quant/copy_memory.h"
#include "core/quant/operand_setting.h"
#include "core/runtime/bindings.h"
#include "core/runtime/expert_loads.h"
#include "core/runtime/neighbour_watch.h"
#include "core/runtime/numerics_run.h"
#include "core/runtime/rank_devices.h"
#include "core/runtime/tensor_capture.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <random>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

StepClock clockFor(StepTiming timing) {
  switch (timing) {
    case StepTiming::Cupti: return StepClock::Trace;
    case StepTiming::Host: return StepClock::Host;
    case StepTiming::None: return StepClock::None;
    case StepTiming::Auto:
    case StepTiming::Events: break;
  }
  return StepClock::Events;
}

StepTiming timingOf(StepClock clock) {
  switch (clock) {
    case StepClock::Trace: return StepTiming::Cupti;
    case StepClock::Events: return StepTiming::Events;
    case StepClock::Host: return StepTiming::Host;
    case StepClock::None: break;
  }
  return StepTiming::None;
}

std::vector<std::string> ownersOf(const Graph& graph, const Step& step) {
  std::vector<std::string> owners;
  const auto add = [&](NodeId id) {
    if (std::ranges::count(owners, graph.node(id).owner) == 0) owners.push_back(graph.node(id).owner);
  };
  if (step.isQuantize())
    for (const QuantizeWork& work : step.copies) add(work.reader);
  if (step.transfer) add(step.transfer->reader);
  for (const NodeId id : step.nodes) add(id);
  return owners;
}

StepRecord stepRecord(const Graph& graph, const Plan& plan, const Step& step) {
  StepRecord record{.name = step.name,
                    .rule = step.rule,
                    .phase = std::string(phaseName(step.phase)),
                    .kernel = step.kernel,
                    .owners = ownersOf(graph, step),
                    .writes = firstWritten(plan, step),
                    .isView = !step.isLaunched(),
                    .note = step.note,
                    .arithmetic = arithmeticOf(graph, step),
                    .flops = step.flops,
                    .bytes = step.bytesRead + step.bytesWritten};
  for (const NodeId id : step.nodes) record.ops.push_back(graph.node(id).id);
  if (!step.isQuantize())
    for (const QuantizeWork& work : step.copies)
      if (!work.isAmaxOnly()) record.absorbs.push_back(work.name);
  return record;
}

/// Measures the peaks after all rounds, so that the rounds are not disturbed. A device without peaks reports why.
void addPeaks(std::vector<RunRecord>& records, Backend& backend, const ProgressCallback& progress,
              const std::stop_token& cancel) {
  if (cancel.stop_requested()) return;
  if (progress) progress("measuring peaks", 0, 1);
  const Result<DevicePeaks> peaks = backend.measurePeaks();
  for (RunRecord& record : records) {
    if (peaks) record.peaks = *peaks;
    if (!peaks) record.peaksNote = peaks.error().message;
  }
}

/// No two measurements have the same.
std::string newRoundsId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Adds the times of a step on each rank.
void addRanks(StepRecord& record, const RankedExecutor& executor, std::size_t index) {
  record.rankNs = executor.rankNs(index);
  const Step& step = executor.plan().steps[index];
  if (!step.collective) return;
  record.collective = collectiveName(step.collective->kind);
  if (step.collective->isWait()) return;
  const CollectiveTimes times = executor.collectiveTimes(index);
  record.transferNs = times.transferNs;
  record.exposedNs = times.exposedNs;
  record.hiddenNs = times.hiddenNs;
  record.wireBytes = executor.wireBytes(index);
}

std::string timeNow() { return fmt::format("{:%F %R} UTC", fmt::gmtime(std::chrono::system_clock::now())); }

std::vector<std::pair<std::string, std::string>> environmentOf(const DeviceInfo& device, RankedPipeline* ranks) {
  std::vector<std::pair<std::string, std::string>> environment = {{"device", device.name},
                                                                  {"architecture", device.architecture}};
  environment.insert(environment.end(), device.details.begin(), device.details.end());
  if (ranks)
    for (auto& fact : ranks->details()) environment.push_back(std::move(fact));
  environment.emplace_back("compiler", __VERSION__);
  environment.emplace_back("measured at", timeNow());
  return environment;
}

}  // namespace

std::string errorText(const std::vector<Diagnostic>& diagnostics, std::string_view file) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::Error) lines.push_back(toString(diagnostic, file));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

namespace {

Result<std::optional<Recipe>> chosenRecipe(const RunSpec& settings) {
  if (settings.recipe.empty()) return std::optional<Recipe>();
  const Result<const RecipeDefinition*> definition = recipeNamed(settings.recipe);
  if (!definition) return Error{fmt::format("recipe: {}", definition.error().message), ErrorKind::Usage};
  Result<Recipe> recipe = recipeWithSettings(**definition, settings.recipeFields);
  if (!recipe) return recipe.error();
  return std::optional<Recipe>(std::move(*recipe));
}

Result<std::optional<AdamW>> chosenOptimizer(const RunSpec& settings) {
  if (settings.optimizer == Optimizer::None) {
    if (settings.optimizerFields.empty()) return std::optional<AdamW>();
    const auto& [name, value] = settings.optimizerFields.front();
    return Error{fmt::format("--optimizer-set {}={}: the optimizer is missing. Add --optimizer adamw.", name, value),
                 ErrorKind::Usage};
  }
  if (settings.pass != ExecutionMode::Training)
    return Error{
        fmt::format("--optimizer {}: the forward pass has no gradients. Use --pass train, or --optimizer none.",
                    nameOf(settings.optimizer)),
        ErrorKind::Usage};
  Result<AdamW> options = adamWFrom(settings.optimizerFields);
  if (!options) return options.error();
  return std::optional<AdamW>(*options);
}

}  // namespace

/// On the CPU the pieces of a GEMM take longer, and ranks have no cores for what is beside them.
RankPlace rankPlace(const RunSpec& settings, bool isOnHost) {
  const bool isOne = settings.chunks == 0 && isOnHost;
  return {.ranks = settings.ranks, .overlapsCollectives = settings.overlaps, .chunks = isOne ? 1 : settings.chunks};
}

Result<AnalysisOptions> analysisOptions(const RunSpec& settings, const RuleSwitches& switches,
                                        Capabilities capabilities) {
  Result<std::optional<Recipe>> recipe = chosenRecipe(settings);
  if (!recipe) return recipe.error();
  const Result<std::optional<AdamW>> optimizer = chosenOptimizer(settings);
  if (!optimizer) return optimizer.error();
  AnalysisOptions options{.lowering = {.pass = settings.pass, .symbols = {}, .optimizer = *optimizer},
                          .book = settings.rules,
                          .switches = switches,
                          .capabilities = std::move(capabilities)};
  options.recipe = std::move(*recipe);
  options.lowering.symbols.insert(settings.symbols.begin(), settings.symbols.end());
  return options;
}

Result<std::unique_ptr<PipelineRun>> PipelineRun::prepare(const LoadedDocument& loaded, const std::string& pipelineName,
                                                          PipelineRunOptions options, const BackendRegistry& registry) {
  std::unique_ptr<PipelineRun> run(new PipelineRun);
  run->m_pipelineName = pipelineName;
  run->m_options = std::move(options);
  if (std::string problems = errorText(loaded.diagnostics, pipelineName); !problems.empty()) return Error{problems};
  if (Result<void> opened = run->openDevices(registry); !opened) return opened.error();
  if (Result<void> analyzed = run->analyzeDocument(loaded); !analyzed) return analyzed.error();
  if (Result<void> added = run->addVariants(); !added) return added.error();
  return run;
}

Result<void> PipelineRun::openDevices(const BackendRegistry& registry) {
  Result<std::shared_ptr<Backend>> backend = registry.open(m_options.settings.device);
  if (!backend) return backend.error();
  m_backend = std::move(*backend);
  if (m_options.settings.ranks == 1) return {};
  const RankPlaces places{.ranks = m_options.settings.ranks,
                          .own = m_options.communicator ? m_options.communicator->rank() : -1,
                          .ranksOfDevice = ranksOfDevice()};
  Result<std::vector<std::shared_ptr<Backend>>> backends = openRankDevices(registry, m_backend, places);
  if (!backends) return backends.error();
  m_rankBackends = std::move(*backends);
  return {};
}

Result<void> PipelineRun::analyzeDocument(const LoadedDocument& loaded) {
  Result<AnalysisOptions> options = analysisOptions(m_options.settings, m_options.switches, capabilitiesOf(m_backend));
  if (!options) return options.error();
  options->gains = m_options.gains;
  options->capability = parseCapability(m_backend->device().architecture);
  options->place = rankPlace(m_options.settings, m_backend->hasHostMemory());
  m_analysis = analyze(loaded.document, *options, &loaded.sourceMap);
  if (std::string problems = errorText(m_analysis.lowered.diagnostics, m_pipelineName); !problems.empty())
    return Error{problems};
  if (Result<void> fits = checkRecipe(); !fits) return fits;
  m_options.settings.recipe = recipeName(loaded.document, m_analysis.recipe);
  m_options.settings.rules = m_analysis.report.book;
  m_pipeline = toJson(loaded.document);
  if (Result<void> fits = checkMemory(); !fits) return fits;
  return bind(loaded, *options);
}

Result<void> PipelineRun::bind(const LoadedDocument& loaded, const AnalysisOptions& options) {
  const Graph& whole = m_analysis.wholeGraph ? *m_analysis.wholeGraph : m_analysis.graph();
  if (m_options.takesTensorsThatFit) m_options.tensors = thoseThatFit(whole, std::move(m_options.tensors));
  Result<NamedTensors> bindings = makeBindings(whole, m_options.settings.seed, m_options.tensors);
  if (!bindings) return bindings.error();
  m_bindings = std::move(*bindings);
  return options.place.ranks == 1 ? Result<void>() : makeRanks(loaded, options);
}

Result<void> PipelineRun::makeRanks(const LoadedDocument& loaded, const AnalysisOptions& options) {
  const auto analyzeRank = [&](int rank) {
    AnalysisOptions own = options;
    own.place.rank = rank;
    return analyze(loaded.document, own, &loaded.sourceMap);
  };
  Result<std::unique_ptr<RankedPipeline>> ranks =
      RankedPipeline::create(m_rankBackends, m_analysis, analyzeRank, m_bindings,
                             m_options.settings.isDeterministic ? SumOrder::Ranks : SumOrder::Library,
                             m_options.communicator, m_options.watch);
  if (!ranks) return ranks.error();
  m_ranks = std::move(*ranks);
  return {};
}

Result<void> PipelineRun::checkOneRank(const char* option) const {
  if (!m_ranks) return {};
  return Error{fmt::format("{}: expected one rank, found --ranks {}. Remove one of the two.", option, m_ranks->size()),
               ErrorKind::Usage};
}

Result<std::unique_ptr<TimedPlan>> PipelineRun::makeExecutor(const Plan& plan, const ExecutorOptions& options) const {
  if (m_ranks) {
    Result<std::unique_ptr<RankedExecutor>> executor = m_ranks->makeExecutor(plan, options);
    if (!executor) return executor.error();
    return std::unique_ptr<TimedPlan>(std::move(*executor));
  }
  Result<std::unique_ptr<Executor>> executor =
      Executor::create(m_backend, m_analysis.graph(), plan, m_bindings, {}, options);
  if (!executor) return executor.error();
  return std::unique_ptr<TimedPlan>(std::move(*executor));
}

Result<const Plan*> PipelineRun::planOf(const std::string& variant) const {
  if (variant == "unfused") return &m_analysis.unfusedPlan();
  if (variant == "fused") return &*m_analysis.fusedPlan;
  constexpr std::size_t kLongest = 40;
  return Error{fmt::format("variants: expected unfused or fused, found \"{}\".", cutText(variant, kLongest)),
               ErrorKind::Usage};
}

/// A GPU multiplies the formats of its tensor cores; others are refused unless emulation is requested.
Result<void> PipelineRun::checkRecipe() const {
  if (!m_analysis.recipe) return {};
  const DeviceInfo& device = m_backend->device();
  const std::optional<ComputeCapability> capability = parseCapability(device.architecture);
  const Verdict fields = capability ? fieldsFit(*m_analysis.recipe, *capability) : Verdict::yes();
  if (!fields) return Error{fmt::format("{}: {}: {}", m_pipelineName, device.id, fields.reason()), ErrorKind::NoDevice};
  if (m_options.settings.emulates) return {};
  const Verdict verdict = m_backend->multiplies(*m_analysis.recipe);
  if (verdict) return {};
  return Error{fmt::format("{}: {}: {} --emulate runs its GEMMs in high precision, at the speed of high precision.",
                           m_pipelineName, device.id, verdict.reason()),
               ErrorKind::NoDevice};
}

/// The ranks that share the device of this process.
int PipelineRun::ranksOfDevice() const {
  if (!m_backend->hasHostMemory()) return 1;
  return m_options.communicator ? m_options.ranksOfMachine : m_options.settings.ranks;
}

Result<void> PipelineRun::checkMemory() const {
  const std::int64_t available = m_backend->freeBytes().value_or(m_backend->device().memoryBytes);
  const std::int64_t held = m_backend->freeBytes() ? 0 : m_options.heldBytes;
  // Tensors that runs start with stay in the host's memory.
  std::int64_t needed = m_backend->hasHostMemory() ? bindingBytes(m_analysis.graph()) : 0;
  for (const std::string& name : m_options.variants) {
    Result<const Plan*> plan = planOf(name);
    if (!plan) return plan.error();
    needed += (*plan)->peakBytes() * ranksOfDevice();
  }
  if (available == 0 || needed + held <= available) return {};
  const std::string beside =
      held > 0 ? fmt::format(" in addition to {} for the plans that are measured together", formatBytes(held))
               : std::string();
  return Error{fmt::format("{}: the plans need {} of memory{}, but {} has {}{}. {}", m_pipelineName,
                           formatBytes(needed), beside, m_backend->device().id, formatBytes(available),
                           m_backend->freeBytes() ? " free" : "", m_options.tooLargeAdvice),
               ErrorKind::RunFailed};
}

std::int64_t PipelineRun::heldBytes() const {
  std::int64_t bytes = 0;
  for (const Variant& variant : m_variants) bytes += variant.plan->peakBytes();
  return bytes;
}

Result<void> PipelineRun::addVariants() {
  const RunSpec& settings = m_options.settings;
  const ExecutorOptions options{.clock = clockFor(settings.timing), .replaysLaunches = settings.replays};
  if (options.clock == StepClock::Trace)  // it sees one GPU of a process
    if (Result<void> one = checkOneRank("--timing cupti"); !one) return one.error();
  for (const std::string& name : m_options.variants) {
    Result<const Plan*> plan = planOf(name);
    if (!plan) return plan.error();
    if (std::ranges::find(m_variants, name, &Variant::name) != m_variants.end())
      return Error{fmt::format("variants: {} is named twice. Name unfused, fused, or both.", name), ErrorKind::Usage};
    const auto start = std::chrono::steady_clock::now();
    Result<std::unique_ptr<TimedPlan>> executor = makeExecutor(**plan, options);
    if (!executor) return executor.error();
    const auto* const ranked = dynamic_cast<const RankedExecutor*>(executor->get());
    const std::chrono::duration<double, std::nano> preparation = std::chrono::steady_clock::now() - start;
    m_variants.push_back({name, *plan, std::move(*executor), ranked, preparation.count()});
  }
  return resolveTiming();
}

Result<void> PipelineRun::resolveTiming() {
  const StepTiming timing = m_options.settings.timing;
  const StepClock clock = m_variants.empty() ? StepClock::Host : m_variants.front().executor->clock();
  if (clock == StepClock::Host && (timing == StepTiming::Events || timing == StepTiming::Cupti))
    return Error{fmt::format("timing \"{}\": the device {} has no device clock. Use host, or auto.", nameOf(timing),
                             m_backend->device().id),
                 ErrorKind::Usage};
  noteTiming();
  return {};
}

void PipelineRun::noteTiming() {
  const StepClock clock = m_variants.empty() ? StepClock::Host : m_variants.front().executor->clock();
  m_options.settings.timing = timingOf(clock);
}

Result<RunRecord> PipelineRun::measure(const ProgressCallback& progress, std::stop_token cancel) {
  Result<std::vector<RunRecord>> records = measureTogether(std::array{this}, progress, std::move(cancel));
  if (!records) return records.error();
  return std::move(records->front());
}

Result<std::vector<RunRecord>> PipelineRun::measureTogether(std::span<PipelineRun* const> runs,
                                                            const ProgressCallback& progress, std::stop_token cancel) {
  std::vector<TimedPlan*> executors;
  for (const PipelineRun* run : runs)
    for (const Variant& variant : run->m_variants) executors.push_back(variant.executor.get());
  const PipelineRunOptions& options = runs.front()->m_options;
  MeasurementPolicy policy = options.policy;
  policy.warmup = options.settings.warmup;
  policy.iterations = options.settings.iterations;
  Result<std::unique_ptr<CacheFiller>> filler = runs.front()->cacheFiller();
  if (!filler) return filler.error();
  policy.cacheFiller = filler->get();
  const NeighbourWatch neighbours;
  Result<Measurement> measured = fuseline::measure(executors, policy, progress, cancel);
  if (!measured) return measured.error();
  std::vector<RunRecord> records;
  const std::string roundsId = runs.size() > 1 ? newRoundsId() : std::string();
  auto samples = measured->plans.begin();
  auto conditions = runs.front()->m_backend->conditions();  // first: a GPU raises its clocks again when it idles
  const bool areProcesses = runs.front()->m_ranks && runs.front()->m_ranks->areProcesses();
  if (std::string share = neighbours.text(); !share.empty() && !areProcesses)
    conditions.emplace_back(kNeighboursFact, std::move(share));
  for (PipelineRun* const run : runs) {
    run->noteTiming();  // again: a trace may have been given up
    records.push_back(run->emptyRecord());
    std::ranges::copy(conditions, std::back_inserter(records.back().environment));
    records.back().roundsId = roundsId;
    records.back().isPartial = measured->isPartial;
    records.back().numWarmups = measured->numWarmups;
    for (const Variant& variant : run->m_variants)
      records.back().variants.push_back(run->variantRecord(variant, *samples++));
    if (!run->m_variants.empty() && !measured->isPartial)
      records.back().expertLoads = expertLoads(run->m_analysis.graph(), *run->m_variants.back().executor);
  }
  if (!options.settings.measuresPeaks) return records;
  if (!areProcesses || runs.front()->m_ranks->hasRank0()) addPeaks(records, *runs.front()->m_backend, progress, cancel);
  if (Result<bool> waited = executors.front()->agree(true); !waited) return waited.error();  // others would disturb it
  return records;
}

/// nullptr unless caches shall be cold.
Result<std::unique_ptr<CacheFiller>> PipelineRun::cacheFiller() const {
  if (!m_options.settings.startsCold) return std::unique_ptr<CacheFiller>();
  return m_backend->makeCacheFiller();
}

namespace {

/// Errors of number formats and dumped tensors are those at the parameters that the run begins with.
Graph withoutOptimizer(const Graph& graph) { return Graph(graph).withOptimizer(std::nullopt); }

/// The fusions of a variant.
FusionReport reportOf(const std::string& variant, const Analysis& analysis, const Graph& graph) {
  return variant == "fused" ? analysis.report : unfused(graph);
}

}  // namespace

Result<NumericsReport> PipelineRun::numerics(std::stop_token cancel) const {
  if (Result<void> one = checkOneRank("--numerics"); !one) return one.error();
  return measureNumerics({.backend = m_backend,
                          .graph = withoutOptimizer(m_analysis.graph()),
                          .fused = m_analysis.report,
                          .bindings = m_bindings,
                          .recipe = m_options.settings.recipe,
                          .warmup = m_options.settings.warmup,
                          .cancel = std::move(cancel)});
}

std::vector<CapturableTensor> PipelineRun::capturable() const {
  return capturableTensors(m_analysis, *m_variants.back().plan);
}

Result<NamedTensors> PipelineRun::capture(const TensorChoice& choice, const std::stop_token& cancel) const {
  if (Result<void> one = checkOneRank("--capture"); !one) return one.error();
  std::vector<std::string> names;
  for (const CapturableTensor& tensor : choice.tensors) names.push_back(tensor.name);
  const Graph& graph = m_analysis.graph();
  const Plan plan = makePlan(graph, reportOf(m_variants.back().name, m_analysis, graph), {.joinsInPlace = false});
  return captureTensors({.backend = m_backend,
                         .graph = graph,
                         .plan = plan,
                         .bindings = m_bindings,
                         .tensors = names,
                         .warmup = m_options.settings.warmup},
                        cancel);
}

/// Note about the first variant that is not timed as requested.
std::string PipelineRun::clockNote() const {
  for (const Variant& variant : m_variants)
    if (!variant.executor->clockNote().empty()) return variant.executor->clockNote();
  return {};
}

std::string PipelineRun::pipelineHash() const { return hashWithoutView(m_pipeline); }

RunRecord PipelineRun::emptyRecord() const {
  return {.createdWith = fmt::format("fuseline {}", version()),
          .pipelineName = m_pipelineName,
          .pipelineHash = pipelineHash(),
          .pipeline = m_pipeline,
          .settings = m_options.settings,
          .recipe = m_analysis.recipe ? toJson(*m_analysis.recipe) : Json(),
          .switches = m_options.switches,
          .environment = environmentOf(m_backend->device(), m_ranks.get()),
          .timingNote = clockNote()};
}

VariantRecord PipelineRun::variantRecord(const Variant& variant, const PlanSamples& samples) const {
  VariantRecord record{.name = variant.name,
                       .endToEndNs = samples.endToEndNs,
                       .instrumentedNs = samples.instrumentedNs,
                       .launchNs = samples.launchNs,
                       .preparationNs = variant.preparationNs,
                       .firstRunNs = samples.firstRunNs,
                       .launching = variant.executor->launching(),
                       .unattributed = samples.activities.of(DeviceActivity::kNoStep),
                       .peakBytes = variant.executor->memoryBytes(),
                       .arenaBytes = variant.plan->arenaBytes,
                       .savedForBackwardBytes = variant.plan->savedForBackwardBytes,
                       .hostBytes = variant.plan->hostBytes};
  for (std::size_t i = 0; i < variant.plan->steps.size(); ++i) {
    StepRecord& step = record.steps.emplace_back(stepRecord(m_analysis.graph(), *variant.plan, variant.plan->steps[i]));
    step.samplesNs = samples.stepNs[i];
    step.activities = samples.activities.of(i);
    step.ways = variant.executor->ways(i);
    step.launches = variant.executor->launches(i);
    if (variant.ranked) addRanks(step, *variant.ranked, i);
    record.launches += step.launches;
  }
  record.timeline = samples.medianTimeline();
  return record;
}

Result<NamedTensors> PipelineRun::dump() const {
  const auto isAny = [](TensorRole) { return true; };
  NamedTensors tensors;
  const Graph graph = withoutOptimizer(m_analysis.graph());
  for (const Variant& variant : m_variants) {
    const Plan plan = makePlan(graph, reportOf(variant.name, m_analysis, graph),
                               {.keepIntermediates = true, .overlapsCollectives = m_options.settings.overlaps});
    const std::string prefix = m_variants.size() > 1 ? variant.name + "/" : "";
    if (Result<void> read = runAndRead(plan, 1, isAny, prefix, tensors); !read) return read.error();
  }
  return tensors;
}

namespace {

/// Without an optimizer, further runs would only add to main_grad buffers and age amax histories.
int runsUntilState(const Graph& graph, const RunSpec& settings) {
  return graph.optimizer() ? std::max(1, settings.iterations) : 1;
}

Result<void> runTimes(TimedPlan& executor, int runs) {
  for (int run = 0; run < runs; ++run)
    if (Result<RunOutcome> outcome = executor.run(); !outcome) return outcome.error();
  return {};
}

bool isState(TensorRole role) {
  return role == TensorRole::Parameter || role == TensorRole::MainGradient || role == TensorRole::QuantizerState ||
         role == TensorRole::OptimizerState;
}

}  // namespace

Result<NamedTensors> PipelineRun::state() const {
  NamedTensors tensors;
  const int runs = runsUntilState(m_analysis.graph(), m_options.settings);
  if (Result<void> read = runAndRead(*m_variants.back().plan, runs, isState, "", tensors); !read) return read.error();
  return tensors;
}

namespace {

/// "fc1.input@rowwise" becomes "fc1.input@data", "@scale_inv", "@dequantized"; a columnwise copy, "@columnwise_data"
/// ...
void appendCopy(const std::string& name, const Tensor& memory, NamedTensors& tensors) {
  const Usage direction = memory.spec.quantized->direction;
  const QuantizedTensor tensor = fromMemory(memory.spec, memory.data.data());
  const QuantizedCopy& copy = *tensor.copy(direction);
  const std::string prefix =
      name.substr(0, name.rfind('@') + 1) + (direction == Usage::Columnwise ? "columnwise_" : "");
  tensors.emplace_back(prefix + "data", copy.data);
  tensors.emplace_back(prefix + "scale_inv", copy.scaleInv);
  if (copy.amax)
    tensors.emplace_back(prefix + "amax", Tensor::fromDoubles({DType::F32, {1}}, std::array{double{*copy.amax}}));
  if (!copy.rowAmaxes.empty()) {
    const std::vector<double> amaxes(copy.rowAmaxes.begin(), copy.rowAmaxes.end());
    tensors.emplace_back(prefix + "amax", Tensor::fromDoubles({DType::F32, {std::ssize(amaxes)}}, amaxes));
  }
  tensors.emplace_back(prefix + "dequantized", *dequantize(tensor, direction));
}

/// A parameter that is stored quantized only is saved as it was given.
Tensor givenTensor(const NamedTensors& bindings, const std::string& name) {
  return std::ranges::find(bindings, name, &NamedTensors::value_type::first)->second;
}

void append(const std::string& name, Tensor tensor, NamedTensors& tensors) {
  if (tensor.spec.quantized) return appendCopy(name, tensor, tensors);
  tensors.emplace_back(name, std::move(tensor));
}

}  // namespace

Result<void> PipelineRun::runAndRead(const Plan& plan, int runs, const std::function<bool(TensorRole)>& isWanted,
                                     const std::string& prefix, NamedTensors& tensors) const {
  Result<std::unique_ptr<TimedPlan>> executor = makeExecutor(plan);
  if (!executor) return executor.error();
  if (Result<void> ran = runTimes(**executor, runs); !ran) return ran;
  for (const PlanTensor& planned : plan.tensors) {
    if (!isWanted(planned.role)) continue;
    if (!isOfModel(planned)) continue;
    Result<Tensor> tensor =
        planned.isInitialOnly ? givenTensor(m_bindings, planned.name) : (*executor)->read(planned.name);
    if (!tensor) return tensor.error();
    append(prefix + planned.name, std::move(*tensor), tensors);
  }
  return {};
}

/// Ranks have tensors besides, such as gathered ones.
bool PipelineRun::isOfModel(const PlanTensor& tensor) const {
  return !m_ranks || tensor.role == TensorRole::QuantizerState || m_analysis.shards.contains(tensor.name);
}

Result<std::vector<Tensor>> PipelineRun::shardsIn(const RankedExecutor& executor, const PlanTensor& tensor) const {
  if (!tensor.isInitialOnly) return executor.readShards(tensor.name);
  const auto shard = m_analysis.shards.find(tensor.name);
  std::vector<Tensor> shards;
  for (int rank = 0; rank < m_ranks->size(); ++rank)
    shards.push_back(shardOf(givenTensor(m_bindings, tensor.name),
                             shard == m_analysis.shards.end() ? Shard() : shard->second, rank, m_ranks->size()));
  return shards;
}

Result<std::vector<NamedTensors>> PipelineRun::stateOfRanks() const {
  if (!m_ranks) {
    Result<NamedTensors> whole = state();
    if (!whole) return whole.error();
    return std::vector<NamedTensors>{std::move(*whole)};
  }
  Result<std::unique_ptr<RankedExecutor>> executor = m_ranks->makeExecutor(*m_variants.back().plan);
  if (!executor) return executor.error();
  const int runs = runsUntilState(m_analysis.graph(), m_options.settings);
  if (Result<void> ran = runTimes(**executor, runs); !ran) return ran.error();
  std::vector<NamedTensors> states(static_cast<std::size_t>(m_ranks->size()));
  for (const PlanTensor& planned : m_variants.back().plan->tensors) {
    if (!isState(planned.role) || !isOfModel(planned)) continue;
    Result<std::vector<Tensor>> shards = shardsIn(**executor, planned);
    if (!shards) return shards.error();
    for (int rank = 0; rank < m_ranks->size(); ++rank)
      if (m_ranks->isHere(rank))
        append(planned.name, std::move((*shards)[static_cast<std::size_t>(rank)]),
               states[static_cast<std::size_t>(rank)]);
  }
  return states;
}

}  // namespace fuseline
